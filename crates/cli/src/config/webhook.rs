//! The keys of a destination of kind `webhook`.
//!
//! What a URL, a header or a secret may be is the sink's knowledge: each is tried on a sink of its own here, so that
//! a mistake is told with its place.

use std::path::PathBuf;

use postbox_sinks::webhook::{ConfigError, WebhookConfig, WebhookSink};
use secrecy::SecretString;
use toml::de::DeValue;

use super::document::{Located, Section};
use super::problem::Collector;
use super::secret::{SecretRef, reference, references};

/// A URL that needs no certificates, for trying out everything else.
const ANY_URL: &str = "http://localhost/";

/// How to reach a webhook.
#[derive(Debug, Clone)]
pub(crate) struct WebhookSettings {
    url: Located<String>,
    request_headers: Vec<(Located<String>, SecretValue)>,
    secrets: Vec<Located<SecretRef>>,
    ca_file: Option<Located<PathBuf>>,
}

/// A text written in the file, or a secret kept elsewhere.
#[derive(Debug, Clone)]
enum SecretValue {
    Plain(String),
    Kept(Located<SecretRef>),
}

impl SecretValue {
    fn read(&self) -> Result<SecretString, String> {
        match self {
            Self::Plain(text) => Ok(SecretString::from(text.as_str())),
            Self::Kept(reference) => reference.value.read(),
        }
    }
}

impl WebhookSettings {
    /// Reads the keys; `None` when there is no usable URL.
    pub(crate) fn read(section: &mut Section<'_>) -> Option<Self> {
        let url = read_url(section);
        let request_headers = read_request_headers(section);
        let secrets = references(section, "secret");
        let ca_file =
            section.text("ca_file").map(|path| Located { value: PathBuf::from(path.value), span: path.span });
        Some(Self { url: url?, request_headers, secrets, ca_file })
    }

    /// Notes every secret that is missing or of the wrong form, and a file of certificates that cannot be read.
    pub(crate) fn check_outside(&self, destination: &str, problems: &Collector) {
        let in_headers = self.request_headers.iter().filter_map(|(name, value)| match value {
            SecretValue::Kept(reference) => Some((Some(&name.value), reference)),
            SecretValue::Plain(_) => None,
        });
        for (header, reference) in self.secrets.iter().map(|secret| (None, secret)).chain(in_headers) {
            let found = match reference.value.read() {
                Ok(found) => found,
                Err(reason) => {
                    let help = Some(reference.value.remedy());
                    problems.note(
                        &reference.span,
                        format!("a secret of {destination:?} is missing"),
                        reason,
                        help,
                    );
                    continue;
                }
            };
            let mut trial = WebhookConfig::new(ANY_URL);
            match header {
                Some(name) => trial.headers.push((name.clone(), found)),
                None => trial.secrets.push(found),
            }
            if let Err(error) = WebhookSink::new(trial) {
                problems.note(
                    &reference.span,
                    format!("a secret of {destination:?} cannot be used"),
                    format!("what is kept here {}", error.problem),
                    None,
                );
            }
        }
        if let Some(ca_file) = &self.ca_file {
            let trial = WebhookConfig {
                ca_file: Some(ca_file.value.clone()),
                ..WebhookConfig::new("https://localhost/")
            };
            if let Err(error) = WebhookSink::new(trial) {
                problems.note(&ca_file.span, "`ca_file` cannot be used", error.problem, None);
            }
        }
    }

    /// The sink, with its secrets read now.
    ///
    /// # Errors
    /// What cannot be used, in one line.
    pub(crate) fn sink(&self, concurrency: usize) -> Result<WebhookSink, String> {
        let config = WebhookConfig {
            secrets: self.secrets.iter().map(|secret| secret.value.read()).collect::<Result<_, _>>()?,
            headers: self
                .request_headers
                .iter()
                .map(|(name, value)| Ok((name.value.clone(), value.read()?)))
                .collect::<Result<_, String>>()?,
            concurrency,
            ca_file: self.ca_file.as_ref().map(|path| path.value.clone()),
            ..WebhookConfig::new(&self.url.value)
        };
        WebhookSink::new(config).map_err(|ConfigError { key, problem }| format!("`{key}` {problem}"))
    }
}

fn read_url(section: &mut Section<'_>) -> Option<Located<String>> {
    let Some(url) = section.text("url") else {
        if !section.has("url") {
            section.missing("url", "url = \"https://billing.example/hooks\"");
        }
        return None;
    };
    // Certificates are not this check's business, and loading them takes a while.
    let trial = match url.value.strip_prefix("https:") {
        Some(rest) => format!("http:{rest}"),
        None => url.value.clone(),
    };
    if let Err(error) = WebhookSink::new(WebhookConfig::new(trial)) {
        let problem = error.problem.replace("`headers`", "`request_headers`");
        section.problems().note(&url.span, "this `url` cannot be used", format!("it {problem}"), None);
        return None;
    }
    Some(url)
}

fn read_request_headers(section: &mut Section<'_>) -> Vec<(Located<String>, SecretValue)> {
    let mut headers = Vec::new();
    for (name, value) in section.entries("request_headers") {
        let (kept, shown) = match value.get_ref() {
            DeValue::Table(_) => {
                (reference(section, "request_headers", value).map(SecretValue::Kept), String::new())
            }
            _ => {
                let text = section.as_text("request_headers", value).map(|text| text.value);
                (text.clone().map(SecretValue::Plain), text.unwrap_or_default())
            }
        };
        let mut trial = WebhookConfig::new(ANY_URL);
        trial.headers.push((name.value.clone(), shown.into()));
        if let Err(error) = WebhookSink::new(trial) {
            section.problems().note(&name.span, "this request header cannot be used", error.problem, None);
        } else {
            headers.extend(kept.map(|kept| (name, kept)));
        }
    }
    headers
}
