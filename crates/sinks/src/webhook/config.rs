//! What an operator says about a webhook.

use std::path::PathBuf;

use postbox_core::destination::DEFAULT_CONCURRENCY;
use secrecy::SecretString;

/// A webhook destination as configured. [`super::WebhookSink::new`] checks it.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    /// Where to POST: `http://` or `https://`, with a host, without user, password or fragment.
    pub url: String,
    /// Standard Webhooks signing secrets, `whsec_` and base64 of 24 to 64 bytes. Each one signs every request, so that
    /// receivers can move from an old to a new one. None: requests are not signed.
    pub secrets: Vec<SecretString>,
    /// Headers to add to every request, for example `authorization`. Their values count as secrets.
    pub headers: Vec<(String, SecretString)>,
    /// Keep-alive connections held open between attempts, at most: the destination's concurrency.
    pub concurrency: usize,
    /// A PEM file of certificates to trust besides those of the system: for receivers with a private authority.
    pub ca_file: Option<PathBuf>,
}

impl WebhookConfig {
    /// An unsigned webhook to `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            secrets: Vec::new(),
            headers: Vec::new(),
            concurrency: DEFAULT_CONCURRENCY,
            ca_file: None,
        }
    }
}

/// A configuration that cannot be used; the message says what to write instead and never repeats a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The key of the destination that is wrong: `url`, `secret`, `headers` or `ca_file`.
    pub key: &'static str,
    /// What is wrong with it and what to do.
    pub problem: String,
}

impl ConfigError {
    pub(super) fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}
