//! The keys of a destination of kind `webhook`.
//!
//! What a URL, a header or a secret may be is the sink's knowledge: each is tried on a sink of its own here, so that
//! a mistake is told with its place.

use jiff::Timestamp;
use postbox_sinks::webhook::{ConfigError, Egress, Envelope, WebhookConfig, WebhookSink};
use secrecy::SecretString;
use toml::de::DeValue;

use super::document::{Located, Section};
use super::problem::Collector;
use super::secret::{SecretRef, reference};
use super::signing::{self, SigningRef};
use super::transport::{ANY_URL, Transport};

/// How to reach a webhook.
#[derive(Debug, Clone)]
pub(crate) struct WebhookSettings {
    url: Located<String>,
    request_headers: Vec<(Located<String>, SecretValue)>,
    secrets: Vec<SigningRef>,
    envelope: Envelope,
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
        let transport = Transport::read(section, Egress::unrestricted());
        let url = read_url(section, &transport);
        let envelope = read_envelope(section);
        let request_headers = read_request_headers(section, &envelope);
        let secrets = signing::read(section);
        Some(Self { url: url?, request_headers, secrets, envelope, transport })
    }

    /// Where requests go.
    pub(crate) fn url(&self) -> &str {
        &self.url.value
    }

    /// Notes every secret that is missing or of the wrong form, and every file that cannot be used.
    pub(crate) fn check_outside(&self, destination: &str, problems: &Collector) {
        let now = Timestamp::now();
        for secret in self.secrets.iter().filter(|secret| !secret.has_expired(now)) {
            check_secret(&secret.kept, destination, problems, |trial, found| {
                trial.secrets.push(found.into());
            });
        }
        for (name, value) in &self.request_headers {
            if let SecretValue::Kept(kept) = value {
                check_secret(kept, destination, problems, |trial, found| {
                    trial.headers.push((name.value.clone(), found));
                });
            }
        }
        self.transport.check_outside(&self.url.value, destination, problems);
    }

    /// The sink, with its secrets read now.
    ///
    /// # Errors
    /// What cannot be used, in one line.
    pub(crate) fn sink(&self, concurrency: usize) -> Result<WebhookSink, String> {
        let now = Timestamp::now();
        let active = self.secrets.iter().filter(|secret| !secret.has_expired(now));
        let config = WebhookConfig {
            secrets: active
                .map(|secret| Ok(secret.with(secret.kept.value.read()?)))
                .collect::<Result<_, String>>()?,
            headers: self
                .request_headers
                .iter()
                .map(|(name, value)| Ok((name.value.clone(), value.read()?)))
                .collect::<Result<_, String>>()?,
            envelope: self.envelope.clone(),
            concurrency,
            ..self.transport.complete(&self.url.value)?
        };
        WebhookSink::new(config).map_err(|ConfigError { key, problem }| format!("`{key}` {problem}"))
    }
}

/// Reads what is kept at `kept` and tries it on a sink, into whose configuration `put` writes it.
fn check_secret(
    kept: &Located<SecretRef>,
    destination: &str,
    problems: &Collector,
    put: impl FnOnce(&mut WebhookConfig, SecretString),
) {
    let found = match kept.value.read() {
        Ok(found) => found,
        Err(reason) => {
            let message = format!("a secret of {destination:?} is missing");
            problems.note(&kept.span, message, reason, Some(kept.value.remedy()));
            return;
        }
    };
    let mut trial = WebhookConfig::new(ANY_URL);
    put(&mut trial, found);
    if let Err(error) = WebhookSink::new(trial) {
        let message = format!("a secret of {destination:?} cannot be used");
        problems.note(&kept.span, message, format!("what is kept here {}", error.problem), None);
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

fn read_envelope(section: &mut Section<'_>) -> Envelope {
    let choices = Envelope::WORDS.map(|word| (word, word));
    let word = section.choice("envelope", &choices);
    let source = section.text("source");
    if word.is_none() && section.has("envelope") {
        return Envelope::Json;
    }
    match Envelope::named(word.unwrap_or(Envelope::WORDS[0]), source.as_ref().map(|text| text.value.as_str()))
    {
        Ok(envelope) => envelope,
        Err(error) => {
            let span = source.map(|text| text.span).unwrap_or_default();
            section.problems().note(
                &span,
                "this `source` cannot be used",
                format!("it {}", error.problem),
                None,
            );
            Envelope::Json
        }
    }
}

fn read_request_headers(
    section: &mut Section<'_>,
    envelope: &Envelope,
) -> Vec<(Located<String>, SecretValue)> {
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
        let trial = WebhookConfig {
            headers: vec![(name.value.clone(), shown.into())],
            envelope: envelope.clone(),
            ..WebhookConfig::new(ANY_URL)
        };
        if let Err(error) = WebhookSink::new(trial) {
            section.problems().note(&name.span, "this request header cannot be used", error.problem, None);
        } else {
            headers.extend(kept.map(|kept| (name, kept)));
        }
    }
    headers
}
