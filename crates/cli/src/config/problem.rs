//! Mistakes in a configuration, each with its place, reported together.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};

/// One mistake.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub(crate) struct Problem {
    message: String,
    #[help]
    help: Option<String>,
    #[source_code]
    source_code: Option<Arc<NamedSource<String>>>,
    #[label("{label}")]
    at: Option<SourceSpan>,
    label: String,
}

/// Every mistake of one configuration.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{summary}")]
pub(crate) struct Problems {
    summary: String,
    #[related]
    problems: Vec<Problem>,
}

/// Where mistakes are collected while a file is read; the file is always read to its end.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    found: RefCell<Vec<(usize, Problem)>>,
}

impl Collector {
    /// Notes a mistake at `span`; `label` is written under the marked text.
    pub(crate) fn note(
        &self,
        span: &Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) {
        let problem = Problem {
            message: message.into(),
            help,
            source_code: None,
            at: Some(SourceSpan::new(span.start.into(), span.len())),
            label: label.into(),
        };
        self.found.borrow_mut().push((span.start, problem));
    }

    /// Nothing when no mistake was noted, otherwise all of them in the order of the file.
    ///
    /// `shown` is the text of the file with everything secret in it masked.
    pub(crate) fn finish(self, name: &str, shown: &str) -> Result<(), Problems> {
        let mut found = self.found.into_inner();
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|(start, _)| *start);
        let source = Arc::new(NamedSource::new(name, shown.to_owned()));
        let problems: Vec<Problem> = found
            .into_iter()
            .map(|(_, problem)| Problem { source_code: Some(Arc::clone(&source)), ..problem })
            .collect();
        let count = problems.len();
        let summary = match count {
            1 => format!("{name} has a mistake; nothing was started"),
            _ => format!("{name} has {count} mistakes; nothing was started"),
        };
        Err(Problems { summary, problems })
    }
}

/// The one of `known` that `word` was probably meant to be.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
