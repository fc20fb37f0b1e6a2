//! Reads a TOML document section by section, noting every mistake with its place and going on.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Collector, nearest};
use postbox_core::duration::{parse_duration, show_duration};

/// A value and where it stands in the file.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// One table of the document. Keys are taken from it one by one; [`Section::finish`] complains about the rest.
pub(crate) struct Section<'d> {
    /// How the file writes it, for example `[relay]`.
    title: String,
    span: Range<usize>,
    table: &'d DeTable<'d>,
    known: Vec<&'static str>,
    forgiven: Vec<&'static str>,
    problems: &'d Collector,
}

impl<'d> Section<'d> {
    pub(crate) fn new(
        title: impl Into<String>,
        span: Range<usize>,
        table: &'d DeTable<'d>,
        problems: &'d Collector,
    ) -> Self {
        Self { title: title.into(), span, table, known: Vec::new(), forgiven: Vec::new(), problems }
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(crate) fn problems(&self) -> &'d Collector {
        self.problems
    }

    /// The raw value of `key`.
    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'d Spanned<DeValue<'d>>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.iter().find(|(name, _)| &**name.get_ref() == key).map(|(_, value)| value)
    }

    /// Whether `key` is there, right or wrong.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.key_span(key).is_some()
    }

    /// Where `key` itself stands.
    pub(crate) fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.table.keys().find(|name| &**name.get_ref() == key).map(Spanned::span)
    }

    /// Takes `key` out of what [`Section::finish`] complains about, without offering it as a key.
    pub(crate) fn forgive(&mut self, key: &'static str) {
        self.forgiven.push(key);
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<Located<String>> {
        let value = self.value(key)?;
        self.as_text(key, value)
    }

    /// A duration within `bounds`.
    pub(crate) fn duration(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Located<Duration>> {
        let value = self.value(key)?;
        self.as_duration(key, value, bounds)
    }

    /// A list of durations, each within `bounds`, not empty.
    pub(crate) fn durations(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Vec<Duration>> {
        let items = self.list(key, "a list of durations")?;
        Some(
            items
                .filter_map(|item| self.as_duration(key, item, bounds.clone()))
                .map(|found| found.value)
                .collect(),
        )
    }

    /// A whole number within `bounds`.
    pub(crate) fn count(&mut self, key: &'static str, bounds: RangeInclusive<usize>) -> Option<usize> {
        let value = self.value(key)?;
        let DeValue::Integer(number) = value.get_ref() else {
            return self.wrong(key, value, "a whole number");
        };
        let read = usize::from_str_radix(number.as_str().trim_start_matches('+'), number.radix()).ok();
        self.within(key, value.span(), read, &bounds, number)
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.wrong(key, value, "true or false"),
        }
    }

    /// A number, whole or not, within `bounds`.
    pub(crate) fn number(&mut self, key: &'static str, bounds: RangeInclusive<f64>) -> Option<f64> {
        let value = self.value(key)?;
        let text = match value.get_ref() {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            _ => return self.wrong(key, value, "a number"),
        };
        self.within(key, value.span(), text.parse().ok(), &bounds, text)
    }

    /// A list of texts, not empty, none of them empty.
    pub(crate) fn texts(&mut self, key: &'static str) -> Option<Vec<Located<String>>> {
        let items = self.list(key, "a list of texts")?;
        let texts: Vec<_> = items.filter_map(|item| self.as_text(key, item)).collect();
        for text in texts.iter().filter(|text| text.value.is_empty()) {
            self.problems.note(&text.span, format!("`{key}` holds an empty text"), "matches nothing", None);
        }
        Some(texts)
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
        let word = self.text(key)?;
        let found = choices.iter().find(|(name, _)| *name == word.value).map(|(_, choice)| *choice);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.problems.note(
                &word.span,
                format!("`{key}` cannot be {:?}", word.value),
                "not one of the choices",
                Some(suggestion(&word.value, &names, "choices")),
            );
        }
        found
    }

    /// A table inside this one.
    pub(crate) fn section(&mut self, key: &'static str) -> Option<Section<'d>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(table) => {
                let title = format!("{} of {}", quoted(key), self.title);
                let title = if self.title.is_empty() { format!("[{key}]") } else { title };
                Some(Section::new(title, value.span(), table, self.problems))
            }
            _ => self.wrong(key, value, "a table"),
        }
    }

    /// The tables of `[[key]]`.
    pub(crate) fn sections(&mut self, key: &'static str) -> Vec<Section<'d>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let title = format!("[[{key}]]");
        match value.get_ref() {
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| match item.get_ref() {
                    DeValue::Table(table) => Some(Section::new(&title, item.span(), table, self.problems)),
                    _ => self.wrong(key, item, "a table"),
                })
                .collect(),
            DeValue::Table(_) => {
                self.problems.note(
                    &value.span(),
                    format!("`{key}` is a list of tables"),
                    "a single table",
                    Some(format!("write the header with two brackets: {title}")),
                );
                Vec::new()
            }
            _ => self.wrong(key, value, "a list of tables").unwrap_or_default(),
        }
    }

    /// The entries of the table `key`, which the user names.
    pub(crate) fn entries(&mut self, key: &'static str) -> Vec<(Located<String>, &'d Spanned<DeValue<'d>>)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            return self.wrong(key, value, "a table").unwrap_or_default();
        };
        table
            .iter()
            .map(|(name, value)| (Located { value: name.get_ref().to_string(), span: name.span() }, value))
            .collect()
    }

    /// Notes that `key` must be there.
    pub(crate) fn missing(&self, key: &str, example: &str) {
        self.problems.note(
            &self.span,
            format!("{} has no `{key}`", self.title),
            format!("`{key}` is missing"),
            Some(format!("add for example: {example}")),
        );
    }

    /// Notes every key that was not asked for.
    pub(crate) fn finish(self) {
        for (name, _) in self.table {
            let key = name.get_ref();
            if !self.known.iter().chain(&self.forgiven).any(|known| known == key) {
                let place = if self.title.is_empty() { String::new() } else { format!(" in {}", self.title) };
                self.problems.note(
                    &name.span(),
                    format!("unknown key `{key}`{place}"),
                    "not a key here",
                    Some(suggestion(key, &self.known, "keys")),
                );
            }
        }
    }

    /// A text value of `key` or of one of its items.
    pub(crate) fn as_text(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Located<String>> {
        match value.get_ref() {
            DeValue::String(text) => Some(Located { value: text.to_string(), span: value.span() }),
            _ => self.wrong(key, value, "a text in quotes"),
        }
    }

    fn as_duration(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Located<Duration>> {
        let DeValue::String(text) = value.get_ref() else {
            return self.wrong(key, value, "a duration in quotes, for example \"5s\"");
        };
        let duration = match parse_duration(text) {
            Ok(duration) => duration,
            Err(reason) => {
                self.problems.note(&value.span(), format!("`{key}` is not a duration"), reason, None);
                return None;
            }
        };
        if !bounds.contains(&duration) {
            let (low, high) = (show_duration(*bounds.start()), show_duration(*bounds.end()));
            self.problems.note(
                &value.span(),
                format!("`{key}` must be {low} to {high}"),
                "out of bounds",
                None,
            );
            return None;
        }
        Some(Located { value: duration, span: value.span() })
    }

    fn list(
        &mut self,
        key: &'static str,
        what: &str,
    ) -> Option<impl Iterator<Item = &'d Spanned<DeValue<'d>>> + use<'d>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Array(items) if items.is_empty() => {
                self.problems.note(
                    &value.span(),
                    format!("`{key}` is empty"),
                    "no entry",
                    Some("remove the key for its default".into()),
                );
                None
            }
            DeValue::Array(items) => Some(items.iter()),
            _ => self.wrong(key, value, what),
        }
    }

    fn within<T: PartialOrd + Display>(
        &self,
        key: &str,
        span: Range<usize>,
        read: Option<T>,
        bounds: &RangeInclusive<T>,
        shown: impl Display,
    ) -> Option<T> {
        let found = read.filter(|number| bounds.contains(number));
        if found.is_none() {
            self.problems.note(
                &span,
                format!("`{key}` must be {} to {}", bounds.start(), bounds.end()),
                format!("{shown} is out of bounds"),
                None,
            );
        }
        found
    }

    fn wrong<T>(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.problems.note(
            &value.span(),
            format!("`{key}` must be {wanted}"),
            format!("this is {found}"),
            None,
        );
        None
    }
}

fn quoted(key: &str) -> String {
    format!("`{key}`")
}

/// "did you mean", or the list of what there is.
pub(crate) fn suggestion(word: &str, known: &[&str], what: &str) -> String {
    match nearest(word, known) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("the {what} are: {}", known.join(", ")),
    }
}
