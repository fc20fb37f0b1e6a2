//! A JSON object, taken apart without changing or repeating anything of it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::message::Refusal;

/// Longest name of a field that a reason repeats.
const MAX_SHOWN_NAME: usize = 40;

/// The fields of one object, in their order, with the text of each value.
pub(super) struct Fields<'a> {
    /// Where the object is in the payload: empty, or `template`.
    path: &'a str,
    fields: Vec<(String, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    /// Those of the object that `text` is.
    pub(super) fn read(path: &'a str, text: &'a str) -> Result<Self, Refusal> {
        // Before parsing: the parser's words about another value would repeat it.
        let object = text.trim_start().starts_with('{');
        let Some(Pairs(fields)) = object.then(|| serde_json::from_str(text).ok()).flatten() else {
            let problem = if path.is_empty() { "is no JSON object" } else { "must be an object" };
            return Err(Refusal::new(path, problem));
        };
        let read = Self { path, fields };
        match read.repeated() {
            Some(name) => Err(read.refusal(name, "stands there twice")),
            None => Ok(read),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The value of `name`; null is as good as nothing, as it is for the Cloud API.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// A text that is not empty.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let text: String = serde_json::from_str(value.get())
            .map_err(|_| self.refusal(name, "must be a text of valid Unicode"))?;
        if text.is_empty() {
            return Err(self.refusal(name, "is empty"));
        }
        Ok(Some(text))
    }

    /// A text that must be there.
    pub(super) fn required_text(&self, name: &str) -> Result<String, Refusal> {
        self.text(name)?.ok_or_else(|| self.refusal(name, "is missing"))
    }

    /// A value that must be there.
    pub(super) fn required(&self, name: &str) -> Result<&'a RawValue, Refusal> {
        self.get(name).ok_or_else(|| self.refusal(name, "is missing"))
    }

    /// A refusal of one of these fields.
    pub(super) fn refusal(&self, name: &str, problem: impl Into<String>) -> Refusal {
        Refusal::new(joined(self.path, name), problem)
    }

    fn repeated(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

/// `path.name`. A name may hold anything, also what must not be shown; then it is told by what it is.
fn joined(path: &str, name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= MAX_SHOWN_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let name = if plain { name } else { "(a strange name)" };
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// An object's pairs as they stand there, repetitions included.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
