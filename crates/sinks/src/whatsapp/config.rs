//! What an operator says about a WhatsApp number.

use std::path::PathBuf;

use postbox_core::destination::DEFAULT_CONCURRENCY;

use super::short::check_language;
use super::token::Token;
use crate::http_client::egress::Egress;
use crate::http_client::{Client, ClientConfig, ClientIdentity, ConfigError, Hints, ProxyConfig};

/// Where the Graph API is.
pub const DEFAULT_BASE_URL: &str = "https://graph.facebook.com";

/// The current version of the Graph API, introduced on 29 July 2026 (Meta: Graph API, Changelog). A version works for at
/// least two years after the next one appeared (Meta: Platform versioning).
pub const DEFAULT_VERSION: &str = "v26.0";

/// The language of templates in the short form that name none.
pub const DEFAULT_LANGUAGE: &str = "en_US";

/// Longest accepted id of a phone number, in digits; Meta's have about 15.
const MAX_ID_DIGITS: usize = 32;

/// A business phone number as configured. [`super::WhatsappSink::new`] checks it.
#[derive(Debug, Clone)]
pub struct WhatsappConfig {
    /// Meta's id of the number that messages come from: digits, not the number itself.
    pub phone_number_id: String,
    /// The access token.
    pub token: Token,
    /// Version of the Graph API: `v26.0`.
    pub version: String,
    /// Where the Graph API is, without version and path.
    pub base_url: String,
    /// Language of templates in the short form that name none.
    pub language: String,
    /// Keep-alive connections held open between attempts, at most: the destination's concurrency.
    pub concurrency: usize,
    /// A PEM file of certificates to trust besides those of the system.
    pub ca_file: Option<PathBuf>,
    /// What to show to a server that asks for a certificate. Only with https.
    pub client_identity: Option<ClientIdentity>,
    /// Whether `http://` may leave this machine. Without it, it is accepted for `localhost` and loopback addresses only.
    pub allow_http: bool,
    /// Which addresses may be connected to, whatever the host resolves to.
    pub egress: Egress,
    /// A proxy to go through.
    pub proxy: Option<ProxyConfig>,
}

impl WhatsappConfig {
    /// The number with the id `phone_number_id`, with the defaults of everything else.
    pub fn new(phone_number_id: impl Into<String>, token: impl Into<Token>) -> Self {
        Self {
            phone_number_id: phone_number_id.into(),
            token: token.into(),
            version: DEFAULT_VERSION.to_owned(),
            base_url: DEFAULT_BASE_URL.to_owned(),
            language: DEFAULT_LANGUAGE.to_owned(),
            concurrency: DEFAULT_CONCURRENCY,
            ca_file: None,
            client_identity: None,
            allow_http: false,
            egress: Egress::unrestricted(),
            proxy: None,
        }
    }

    /// Where requests go.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/{}/{}/messages", self.base_url.trim_end_matches('/'), self.version, self.phone_number_id)
    }

    /// Checks everything but the token and what is in files, without looking anything up.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        let digits = self.phone_number_id.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || self.phone_number_id.is_empty() || self.phone_number_id.len() > MAX_ID_DIGITS {
            let problem = "is not the id of a number: digits, as Meta's console shows them beside the number";
            return Err(ConfigError::new("phone_number_id", problem));
        }
        if !is_version(&self.version) {
            let problem = format!("is no version of the Graph API: write for example {DEFAULT_VERSION}");
            return Err(ConfigError::new("version", problem));
        }
        if self.base_url.contains(['?', '#']) {
            return Err(ConfigError::new("base_url", "has a query or fragment: take it out"));
        }
        check_language(&self.language).map_err(|problem| ConfigError::new("language", problem))?;
        Client::check_url(&self.client()).map_err(about_base_url)
    }

    /// The way to the API.
    pub(super) fn client(&self) -> ClientConfig {
        ClientConfig {
            url: self.url(),
            concurrency: self.concurrency,
            ca_file: self.ca_file.clone(),
            client_identity: self.client_identity.clone(),
            allow_http: self.allow_http,
            egress: self.egress.clone(),
            proxy: self.proxy.clone(),
            // The body has the message's id, without which nobody knows whether there is a message.
            body_wait: None,
            hints: Hints {
                example: DEFAULT_BASE_URL,
                credentials: "name the place of the access token in `token`",
            },
        }
    }
}

/// The client knows only whole URLs.
pub(super) fn about_base_url(error: ConfigError) -> ConfigError {
    match error.key {
        "url" => ConfigError { key: "base_url", ..error },
        _ => error,
    }
}

/// `v`, a number, a dot, a number.
fn is_version(text: &str) -> bool {
    let number = |text: &str| (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.strip_prefix('v')
        .and_then(|numbers| numbers.split_once('.'))
        .is_some_and(|(major, minor)| number(major) && number(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "106540352242922";

    #[test]
    fn the_url_is_that_of_the_number_s_messages() {
        let config = WhatsappConfig::new(ID, "t");
        assert_eq!(config.url(), "https://graph.facebook.com/v26.0/106540352242922/messages");
        let config = WhatsappConfig { base_url: "http://localhost:9/graph/".into(), ..config };
        assert_eq!(config.url(), "http://localhost:9/graph/v26.0/106540352242922/messages");
        config.check().unwrap();
    }

    #[test]
    fn what_cannot_be_used_is_refused_by_its_key() {
        let fine = WhatsappConfig::new(ID, "t");
        for (key, hint, config) in [
            (
                "phone_number_id",
                "digits",
                WhatsappConfig { phone_number_id: "+49 170".into(), ..fine.clone() },
            ),
            ("phone_number_id", "digits", WhatsappConfig { phone_number_id: String::new(), ..fine.clone() }),
            ("version", "v26.0", WhatsappConfig { version: "26".into(), ..fine.clone() }),
            ("version", "v26.0", WhatsappConfig { version: "v26.0/x".into(), ..fine.clone() }),
            (
                "base_url",
                "no scheme",
                WhatsappConfig { base_url: "graph.facebook.com".into(), ..fine.clone() },
            ),
            (
                "base_url",
                "`allow_http`",
                WhatsappConfig { base_url: "http://graph.example".into(), ..fine.clone() },
            ),
            (
                "base_url",
                "`token`",
                WhatsappConfig { base_url: "https://a:b@graph.example".into(), ..fine.clone() },
            ),
            (
                "base_url",
                "query",
                WhatsappConfig { base_url: "https://graph.example?a".into(), ..fine.clone() },
            ),
            ("language", "en_US", WhatsappConfig { language: "english!".into(), ..fine.clone() }),
        ] {
            let error = config.check().expect_err(key);
            assert_eq!(error.key, key, "{error}");
            assert!(error.problem.contains(hint), "{error}");
        }
    }
}
