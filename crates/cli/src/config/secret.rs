//! References to secrets: the file names where one is kept, never the secret itself.

use std::ops::Range;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Located, Section};

/// Where a secret is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretRef {
    /// In an environment variable.
    Env(String),
    /// In a file, whose trailing line break is not part of it.
    File(PathBuf),
}

/// Largest accepted secret file.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// What to write instead of a secret.
const HELP: &str = "write { env = \"NAME\" } or { file = \"/path\" }";

impl SecretRef {
    /// The place that a command line names: `env:NAME` or `file:PATH`.
    pub(crate) fn named(place: &str) -> Option<Self> {
        match place.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Some(Self::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Some(Self::File(PathBuf::from(path))),
            _ => None,
        }
    }

    /// What an operator does when it is missing.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Env(name) => format!("set {name} for this process"),
            Self::File(path) => format!("make {} readable for the user of this process", path.display()),
        }
    }

    /// Reads the secret.
    ///
    /// # Errors
    /// What is missing, in one line, without anything of the secret.
    pub(crate) fn read(&self) -> Result<SecretString, String> {
        let text = match self {
            Self::Env(name) => match std::env::var(name) {
                Ok(text) => text,
                Err(std::env::VarError::NotPresent) => {
                    return Err(format!("the environment variable {name} is not set"));
                }
                Err(std::env::VarError::NotUnicode(_)) => {
                    return Err(format!("the environment variable {name} is not UTF-8"));
                }
            },
            Self::File(path) => read_file(path)?,
        };
        let text = text.trim_end_matches(['\r', '\n']);
        match (text.is_empty(), self) {
            (false, _) => Ok(SecretString::from(text)),
            (true, Self::Env(name)) => Err(format!("the environment variable {name} is empty")),
            (true, Self::File(path)) => Err(format!("the file {} is empty", path.display())),
        }
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let fail = |error: std::io::Error| format!("the file {} cannot be read: {error}", path.display());
    let bytes = std::fs::metadata(path).map_err(fail)?.len();
    if bytes > MAX_SECRET_BYTES {
        return Err(format!("the file {} has {bytes} bytes, more than a secret may have", path.display()));
    }
    std::fs::read_to_string(path).map_err(fail)
}

/// Reads one reference. Files are looked up from the working directory.
pub(crate) fn reference(
    section: &Section<'_>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
) -> Option<Located<SecretRef>> {
    match value.get_ref() {
        DeValue::Table(table) => reference_in(section, key, table, value.span(), HELP),
        _ => {
            let label = "a value; secrets do not belong in this file";
            wrong(section, key, &value.span(), label, HELP);
            None
        }
    }
}

/// Reads the reference that `table` is.
pub(crate) fn reference_in(
    section: &Section<'_>,
    key: &str,
    table: &DeTable<'_>,
    span: Range<usize>,
    help: &str,
) -> Option<Located<SecretRef>> {
    let problem = |label: &str| {
        wrong(section, key, &span, label, help);
        None
    };
    let mut entries = table.iter();
    let (Some((name, place)), None) = (entries.next(), entries.next()) else {
        return problem("exactly one of `env` and `file` belongs here");
    };
    let DeValue::String(place) = place.get_ref() else {
        return problem("the name must be a text in quotes");
    };
    let found = match &**name.get_ref() {
        _ if place.is_empty() => return problem("the name is empty"),
        "env" => SecretRef::Env(place.to_string()),
        "file" => SecretRef::File(PathBuf::from(&**place)),
        _ => return problem("neither `env` nor `file`"),
    };
    Some(Located { value: found, span })
}

fn wrong(section: &Section<'_>, key: &str, span: &Range<usize>, label: &str, help: &str) {
    let message = format!("`{key}` must say where the secret is kept");
    section.problems().note(span, message, label, Some(help.into()));
}
