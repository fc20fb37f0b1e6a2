//! Finds, reads and checks the configuration as a whole.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::Diagnostic;
use toml::de::DeTable;

use super::default::relay_defaults;
use super::destination::DestinationConfig;
use super::document::{Located, Section};
use super::endpoints::EndpointsSection;
use super::mask::masked;
use super::problem::{Collector, Problems};
use super::relay::{RelayOverrides, RelaySection};
use postbox_core::duration::show_duration;

/// Looked up in the working directory when `--config` is not given.
pub(crate) const DEFAULT_FILE: &str = "postbox.toml";

/// Largest accepted file.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Everything the file says, with defaults for what it does not say.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The file, if there was one.
    pub(crate) file: Option<PathBuf>,
    pub(crate) database_url: Option<String>,
    pub(crate) schema: Option<String>,
    pub(crate) relay: RelaySection,
    pub(crate) endpoints: EndpointsSection,
    pub(crate) destinations: Vec<DestinationConfig>,
}

/// Whether secrets are looked at while the file is checked: only who delivers needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// A secret that is missing is a mistake.
    Check,
    /// References are taken as they are.
    Trust,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {} cannot be read: {reason}", path.display())]
    Unreadable {
        path: PathBuf,
        reason: String,
        #[help]
        help: &'static str,
    },
    /// The file can be read and is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Wrong(#[from] Problems),
}

impl Config {
    /// Reads `explicit`, or `postbox.toml` in the working directory when there is one.
    ///
    /// # Errors
    /// When the file cannot be read or says something wrong.
    pub(crate) fn load(explicit: Option<&Path>, secrets: Secrets) -> Result<Self, ConfigError> {
        let path = explicit.unwrap_or(Path::new(DEFAULT_FILE));
        if explicit.is_none() && !path.exists() {
            return Ok(Self::defaults());
        }
        let text = read_text(path)?;
        let config = Self::parse(&path.display().to_string(), &text, secrets)?;
        Ok(Self { file: Some(path.to_owned()), ..config })
    }

    fn defaults() -> Self {
        Self {
            file: None,
            database_url: None,
            schema: None,
            relay: relay_defaults(),
            endpoints: EndpointsSection::default(),
            destinations: Vec::new(),
        }
    }

    /// Reads the text of a file called `name`.
    ///
    /// # Errors
    /// Every mistake in it.
    pub(crate) fn parse(name: &str, text: &str, secrets: Secrets) -> Result<Self, Problems> {
        let (document, syntax) = DeTable::parse_recoverable(text);
        let problems = Collector::default();
        for error in &syntax {
            let span = error.span().unwrap_or_default();
            problems.note(&span, "this is not TOML", error.message(), None);
        }
        let config = read_document(document.get_ref(), &problems, syntax.is_empty(), secrets);
        problems.finish(name, &masked(text, document.get_ref()))?;
        Ok(config)
    }
}

/// After a syntax error only that is worth telling: what the rest seems to say may be an artefact of it.
fn read_document(document: &DeTable<'_>, problems: &Collector, is_toml: bool, secrets: Secrets) -> Config {
    if !is_toml {
        return Config::defaults();
    }
    let mut root = Section::new("", 0..0, document, problems);
    let (mut database_url, mut schema) = (None, None);
    if let Some(mut database) = root.section("database") {
        database_url = database.text("url").map(|text| text.value);
        schema = database.text("schema").map(|text| text.value);
        database.finish();
    }
    let overrides = root.section("relay").map(RelayOverrides::read).unwrap_or_default();
    let lease_ttl = overrides.lease_ttl.clone();
    let relay = overrides.over(&relay_defaults());
    let endpoints = root.section("endpoints").map(EndpointsSection::read).unwrap_or_default();
    let destinations: Vec<DestinationConfig> =
        root.sections("destination").into_iter().filter_map(DestinationConfig::read).collect();
    root.finish();

    unique_names(&destinations, problems);
    lease_outlasts_attempts(&destinations, &relay, lease_ttl.as_ref(), problems);
    if secrets == Secrets::Check {
        for destination in &destinations {
            destination.reach.check_outside(&destination.name.value, problems);
        }
        endpoints.check_outside(problems);
    }
    Config { file: None, database_url, schema, relay, endpoints, destinations }
}

fn unique_names(destinations: &[DestinationConfig], problems: &Collector) {
    let mut seen: HashMap<&str, ()> = HashMap::new();
    for destination in destinations {
        let name = &destination.name;
        if seen.insert(&name.value, ()).is_some() {
            problems.note(
                &name.span,
                format!("there are two destinations named {:?}", name.value),
                "the second one",
                Some("names are stored with every delivery, so each must be unique".into()),
            );
        }
    }
}

/// A relay renews after a third of the lease and starts no attempt that could outlast what is left, so an attempt
/// of two thirds or more would wait for ever.
fn lease_outlasts_attempts(
    destinations: &[DestinationConfig],
    relay: &RelaySection,
    lease_ttl: Option<&Located<Duration>>,
    problems: &Collector,
) {
    let bound = relay.lease_ttl - relay.lease_ttl / 3;
    let Some(slowest) = destinations.iter().max_by_key(|destination| destination.timeout.value) else {
        return;
    };
    let timeout = slowest.timeout.value;
    if timeout < bound {
        return;
    }
    let needed = Duration::from_secs((timeout * 3 / 2).as_secs() + 1);
    problems.note(
        lease_ttl.map_or(&slowest.timeout.span, |found| &found.span),
        format!(
            "lease_ttl = {} is too short for the timeout = {} of {:?}",
            show_duration(relay.lease_ttl),
            show_duration(timeout),
            slowest.name.value
        ),
        format!("leaves less than {} for an attempt", show_duration(bound)),
        Some(format!(
            "a third of the lease is kept for renewing it: set lease_ttl to at least {}, or every timeout below {}",
            show_duration(needed),
            show_duration(bound)
        )),
    );
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    let fail = |reason: String, help| ConfigError::Unreadable { path: path.to_owned(), reason, help };
    let metadata = std::fs::metadata(path).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "`postbox init` writes a commented one; --config names another",
            _ => "check the path and its permissions",
        };
        fail(error.to_string(), help)
    })?;
    if metadata.is_dir() {
        return Err(fail("it is a directory".into(), "--config names a file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(fail(
            format!("it has {} bytes", metadata.len()),
            "this does not look like a configuration",
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| fail(error.to_string(), "check its permissions"))?;
    String::from_utf8(bytes).map_err(|_| {
        fail("it is not UTF-8".into(), "this does not look like a configuration; save it as UTF-8")
    })
}
