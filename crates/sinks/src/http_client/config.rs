//! How to get to a server.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::egress::Egress;

/// A server and the way to it, as each kind of destination takes it from its own configuration.
#[derive(Debug, Clone)]
pub(crate) struct ClientConfig {
    /// Where to POST: `http://` or `https://`, with a host, without user, password or fragment.
    pub(crate) url: String,
    /// Keep-alive connections held open between attempts, at most.
    pub(crate) concurrency: usize,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) client_identity: Option<ClientIdentity>,
    pub(crate) allow_http: bool,
    pub(crate) egress: Egress,
    pub(crate) proxy: Option<ProxyConfig>,
    /// Longest wait for the rest of a body once its head is there; `None` for as long as the attempt may take.
    pub(crate) body_wait: Option<Duration>,
    pub(crate) hints: Hints,
}

/// What differs in what an operator is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints {
    /// A URL as it should be.
    pub(crate) example: &'static str,
    /// What to do with credentials that were found in the URL.
    pub(crate) credentials: &'static str,
}

/// A certificate of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// PEM file: the certificate, then those that lead to its authority.
    pub certificate: PathBuf,
    /// PEM file: its private key (PKCS #8, PKCS #1 or SEC 1), not encrypted.
    pub key: PathBuf,
}

/// A forward proxy that opens tunnels (HTTP CONNECT).
#[derive(Debug, Clone)]
pub struct ProxyConfig {
    /// `http://host:port`, nothing else.
    pub url: String,
    /// `user:password` for it.
    pub credentials: Option<SecretString>,
}

/// A configuration that cannot be used; the message says what to write instead and never repeats a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The field that is wrong, by its name in the configuration: `url`, `secret`, `ca_file`, `proxy`, `token`, …
    pub key: &'static str,
    /// What is wrong with it and what to do.
    pub problem: String,
}

impl ConfigError {
    pub(crate) fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}

#[cfg(test)]
impl ClientConfig {
    /// A direct way to `url`, without restrictions.
    pub(crate) fn to(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            concurrency: 1,
            ca_file: None,
            client_identity: None,
            allow_http: false,
            egress: Egress::unrestricted(),
            proxy: None,
            body_wait: None,
            hints: Hints {
                example: "https://billing.example/hooks",
                credentials: "set an `authorization` header under `headers`",
            },
        }
    }
}
