//! The keys of a destination of kind `webhook`.
//!
//! What a URL, a header or a secret may be is the sink's knowledge: each is tried on a sink of its own here, so that
//! a mistake is told with its place.

use postbox_sinks::webhook::{ConfigError, WebhookConfig, WebhookSink};
use secrecy::SecretString;
use toml::de::DeValue;

use super::document::{Located, Section};
use super::problem::Collector;
use super::secret::{SecretRef, reference, references};
use super::transport::{ANY_URL, Transport};

/// How to reach a webhook.
#[derive(Debug, Clone)]
pub(crate) struct WebhookSettings {
    url: Located<String>,
    request_headers: Vec<(Located<String>, SecretValue)>,
    secrets: Vec<Located<SecretRef>>,
    transport: Transport,
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
        let transport = Transport::read(section);
        let url = read_url(section, &transport);
        let request_headers = read_request_headers(section);
        let secrets = references(section, "secret");
        Some(Self { url: url?, request_headers, secrets, transport })
    }

    /// Notes every secret that is missing or of the wrong form, and every file that cannot be used.
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
        self.transport.check_outside(&self.url.value, destination, problems);
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
            ..self.transport.complete(&self.url.value)?
        };
        WebhookSink::new(config).map_err(|ConfigError { key, problem }| format!("`{key}` {problem}"))
    }
}

fn read_url(section: &mut Section<'_>, transport: &Transport) -> Option<Located<String>> {
    let Some(url) = section.text("url") else {
        if !section.has("url") {
            section.missing("url", "url = \"https://billing.example/hooks\"");
        }
        return None;
    };
    if let Err(error) = transport.towards(&url.value).check_url() {
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
