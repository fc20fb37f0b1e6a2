//! What an operator says about a webhook.

use std::path::PathBuf;
use std::time::Duration;

use postbox_core::destination::DEFAULT_CONCURRENCY;
use secrecy::SecretString;

use super::envelope::Envelope;
use crate::http_client::egress::Egress;
use crate::http_client::{Client, ClientConfig, ClientIdentity, ConfigError, Hints, ProxyConfig};
use crate::standard_webhooks::SigningSecret;

/// Longest wait for the rest of an answer's body: its head has decided everything.
const BODY_WAIT: Duration = Duration::from_secs(2);

/// A webhook destination as configured. [`super::WebhookSink::new`] checks it.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    /// Where to POST: `http://` or `https://`, with a host, without user, password or fragment.
    pub url: String,
    /// Standard Webhooks signing secrets. Each one that has not expired signs every request, so that receivers can move
    /// from an old to a new one. None: requests are not signed.
    pub secrets: Vec<SigningSecret>,
    /// Headers to add to every request, for example `authorization`. Their values count as secrets.
    pub headers: Vec<(String, SecretString)>,
    /// How events are put into requests.
    pub envelope: Envelope,
    /// Keep-alive connections held open between attempts, at most: the destination's concurrency.
    pub concurrency: usize,
    /// A PEM file of certificates to trust besides those of the system: for receivers with a private authority.
    pub ca_file: Option<PathBuf>,
    /// What to show to a receiver that asks for a certificate. Only with https.
    pub client_identity: Option<ClientIdentity>,
    /// Whether `http://` may leave this machine. Without it, it is accepted for `localhost` and loopback addresses only.
    pub allow_http: bool,
    /// Which addresses may be connected to, whatever the URL's host resolves to.
    pub egress: Egress,
    /// A proxy to go through. With an `egress` that restricts anything, the host is looked up and vetted here, and the
    /// proxy is asked for the address; otherwise it is asked for the name.
    pub proxy: Option<ProxyConfig>,
}

impl WebhookConfig {
    /// An unsigned webhook to `url`, whose address an operator wrote: it may be anywhere. For an address that a user
    /// supplied, set `egress` to [`Egress::public`].
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            secrets: Vec::new(),
            headers: Vec::new(),
            envelope: Envelope::Json,
            concurrency: DEFAULT_CONCURRENCY,
            ca_file: None,
            client_identity: None,
            allow_http: false,
            egress: Egress::unrestricted(),
            proxy: None,
        }
    }

    /// Checks the URL against what is allowed, without looking anything up.
    ///
    /// # Errors
    /// When it is no webhook's URL, is http without permission, or holds an address that `egress` refuses.
    pub fn check_url(&self) -> Result<(), ConfigError> {
        Client::check_url(&self.client())
    }

    /// The way to the receiver.
    pub(super) fn client(&self) -> ClientConfig {
        ClientConfig {
            url: self.url.clone(),
            concurrency: self.concurrency,
            ca_file: self.ca_file.clone(),
            client_identity: self.client_identity.clone(),
            allow_http: self.allow_http,
            egress: self.egress.clone(),
            proxy: self.proxy.clone(),
            body_wait: Some(BODY_WAIT),
            hints: Hints {
                example: "https://billing.example/hooks",
                credentials: "set an `authorization` header under `headers`",
            },
        }
    }
}
