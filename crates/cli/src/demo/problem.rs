//! What can keep the demo from being shown.

use miette::Diagnostic;

/// Something that the demo needs did not work.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the demo broke off: {what}")]
pub(crate) struct Problem {
    what: String,
    #[help]
    help: Option<String>,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Problem {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: None, source: None }
    }

    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Turns an error into the problem `what`.
    pub(super) fn because<E>(what: &'static str) -> impl Fn(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |error| Self { source: Some(error.into()), ..Self::new(what) }
    }
}
