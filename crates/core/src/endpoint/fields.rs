//! Reads a JSON object key by key, noting every mistake with its key and going on.
//!
//! Notes name keys and bounds, never what was written: a value may be a secret.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::duration::{parse_duration, show_duration};

/// Longest list of event globs, aggregate types or headers.
const LIST: usize = 100;

/// Longest single text, in bytes: a URL, a glob, the value of a header.
const TEXT_BYTES: usize = 4_096;

/// An object of which keys are taken one by one; [`Fields::finish`] complains about the rest.
pub(super) struct Fields {
    /// In front of its keys in a note: `` or `retry.`.
    prefix: &'static str,
    object: Map<String, Value>,
    problems: Vec<String>,
}

impl Fields {
    pub(super) fn new(object: Map<String, Value>) -> Self {
        Self { prefix: "", object, problems: Vec::new() }
    }

    /// The value of `key`; null is as good as absent.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.object.remove(key).filter(|value| !value.is_null())
    }

    fn note(&mut self, key: &str, problem: impl Display) {
        self.problems.push(format!("`{}{key}` {problem}", self.prefix));
    }

    /// Notes a mistake about the whole.
    pub(super) fn complain(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// Whether anything was wrong so far.
    pub(super) fn is_wrong(&self) -> bool {
        !self.problems.is_empty()
    }

    /// A text, not empty.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let value = self.take(key)?;
        self.as_text(key, value)
    }

    fn as_text(&mut self, key: &str, value: Value) -> Option<String> {
        let wrong = match value {
            Value::String(text) if text.is_empty() => "is empty; leave the key out",
            Value::String(text) if text.len() > TEXT_BYTES => "has more than 4096 bytes",
            Value::String(text) if text.contains('\0') => "holds a NUL",
            Value::String(text) => return Some(text),
            _ => "must be a text",
        };
        self.note(key, wrong);
        None
    }

    /// A list of texts, none of them empty. An empty list is as good as absent.
    pub(super) fn texts(&mut self, key: &str) -> Vec<String> {
        match self.take(key) {
            None => Vec::new(),
            Some(Value::Array(items)) if items.len() <= LIST => {
                items.into_iter().filter_map(|item| self.as_text(key, item)).collect()
            }
            Some(Value::Array(_)) => {
                self.note(key, format!("has more than {LIST} entries"));
                Vec::new()
            }
            Some(_) => {
                self.note(key, "must be a list of texts");
                Vec::new()
            }
        }
    }

    /// An object of texts.
    pub(super) fn text_map(&mut self, key: &str) -> BTreeMap<String, String> {
        let Some(value) = self.take(key) else { return BTreeMap::new() };
        let Value::Object(entries) = value else {
            self.note(key, "must be an object of texts");
            return BTreeMap::new();
        };
        if entries.len() > LIST {
            self.note(key, format!("has more than {LIST} entries"));
        }
        let texts = entries.into_iter().filter_map(|(name, value)| Some((name, self.as_text(key, value)?)));
        texts.collect()
    }

    /// A whole number within `bounds`.
    pub(super) fn count(&mut self, key: &str, bounds: &RangeInclusive<usize>) -> Option<usize> {
        let number = self.take(key)?.as_u64().and_then(|number| usize::try_from(number).ok());
        self.within(key, number, bounds, "must be a whole number,")
    }

    /// Like [`Fields::count`], where the bounds fit.
    pub(super) fn small_count(&mut self, key: &str, bounds: &RangeInclusive<usize>) -> Option<u32> {
        self.count(key, bounds).and_then(|number| u32::try_from(number).ok())
    }

    /// A number within `bounds`.
    pub(super) fn number(&mut self, key: &str, bounds: &RangeInclusive<f64>) -> Option<f64> {
        let number = self.take(key)?.as_f64();
        self.within(key, number, bounds, "must be a number,")
    }

    /// A duration as text within `bounds`.
    pub(super) fn duration(&mut self, key: &str, bounds: &RangeInclusive<Duration>) -> Option<Duration> {
        let value = self.take(key)?;
        self.as_duration(key, &value, bounds)
    }

    /// A list of durations, not empty.
    pub(super) fn durations(
        &mut self,
        key: &str,
        bounds: &RangeInclusive<Duration>,
    ) -> Option<Vec<Duration>> {
        match self.take(key)? {
            Value::Array(items) if !items.is_empty() && items.len() <= LIST => {
                Some(items.iter().filter_map(|item| self.as_duration(key, item, bounds)).collect())
            }
            _ => {
                self.note(
                    key,
                    format!("must be a list of 1 to {LIST} durations, for example [\"5s\", \"30s\"]"),
                );
                None
            }
        }
    }

    fn as_duration(
        &mut self,
        key: &str,
        value: &Value,
        bounds: &RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let Some(text) = value.as_str() else {
            self.note(key, "must be a duration as text, for example \"5s\"");
            return None;
        };
        match parse_duration(text) {
            Ok(duration) if bounds.contains(&duration) => Some(duration),
            Ok(_) => {
                let (low, high) = (show_duration(*bounds.start()), show_duration(*bounds.end()));
                self.note(key, format!("must be {low} to {high}"));
                None
            }
            Err(reason) => {
                self.note(key, format!("is no duration: {reason}"));
                None
            }
        }
    }

    fn within<T: PartialOrd + Display>(
        &mut self,
        key: &str,
        found: Option<T>,
        bounds: &RangeInclusive<T>,
        what: &str,
    ) -> Option<T> {
        let found = found.filter(|number| bounds.contains(number));
        if found.is_none() {
            self.note(key, format!("{what} {} to {}", bounds.start(), bounds.end()));
        }
        found
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let word = self.text(key)?;
        let found = choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.note(key, format!("must be one of: {}", names.join(", ")));
        }
        found
    }

    /// The value of `key` when it is `true` or `false`.
    pub(super) fn switch(&mut self, key: &str) -> Option<bool> {
        let on = self.object.get(key)?.as_bool()?;
        self.object.remove(key);
        Some(on)
    }

    /// Reads the object `key` with `read`.
    pub(super) fn object<T>(
        &mut self,
        key: &str,
        prefix: &'static str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let Value::Object(object) = self.take(key)? else {
            self.note(key, "must be an object");
            return None;
        };
        let mut inner = Self { prefix, object, problems: Vec::new() };
        let found = read(&mut inner);
        let unknown = inner.unknown();
        self.problems.append(&mut inner.problems);
        self.problems.extend(unknown.iter().map(|key| format!("there is no key `{prefix}{key}`")));
        Some(found)
    }

    /// Keys that were not asked for.
    pub(super) fn unknown(&self) -> Vec<String> {
        self.object.keys().map(|key| key.chars().take(64).filter(|c| !c.is_control()).collect()).collect()
    }

    /// Every mistake.
    pub(super) fn finish(self) -> Vec<String> {
        self.problems
    }
}
