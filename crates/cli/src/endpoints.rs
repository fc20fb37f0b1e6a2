//! Webhooks for destinations kept as data.

use std::sync::Arc;

use postbox_core::endpoint::{Endpoint, EndpointSecret, EndpointSettings};
use postbox_core::sink::Sink;
use postbox_relay::Endpoints;
use postbox_sinks::standard_webhooks::SigningSecret;
use postbox_sinks::webhook::{ConfigError, Envelope, WebhookConfig, WebhookSink};
use secrecy::SecretString;

use crate::config::Config;
use crate::error::CommandError;

/// Makes webhooks that go only where `[endpoints]` allows.
#[derive(Debug)]
pub(crate) struct WebhookEndpoints {
    /// A webhook but for its URL, secrets and headers.
    template: WebhookConfig,
}

impl WebhookEndpoints {
    /// As `[endpoints]` says.
    ///
    /// # Errors
    /// When the credentials of its proxy cannot be read.
    pub(crate) fn of(config: &Config) -> Result<Self, CommandError> {
        let template = config.endpoints.webhook().map_err(|problem| {
            CommandError::usage(
                format!("[endpoints] cannot be used: {problem}"),
                "nothing was started; docs/configuration.md explains every key",
            )
        })?;
        Ok(Self { template })
    }

    /// A webhook with these settings, signed with these secrets.
    ///
    /// # Errors
    /// What cannot be used, in one line without a secret.
    pub(crate) fn webhook(
        &self,
        settings: &EndpointSettings,
        secrets: &[EndpointSecret],
    ) -> Result<WebhookSink, String> {
        let word = settings.envelope.as_deref().unwrap_or(Envelope::WORDS[0]);
        let envelope = Envelope::named(word, settings.source.as_deref()).map_err(told)?;
        let headers = settings.request_headers.iter();
        let config = WebhookConfig {
            url: settings.url.clone(),
            secrets: secrets.iter().map(signing).collect(),
            headers: headers
                .map(|(name, value)| (name.clone(), SecretString::from(value.as_str())))
                .collect(),
            envelope,
            concurrency: settings.concurrency,
            ..self.template.clone()
        };
        WebhookSink::new(config).map_err(told)
    }
}

/// What a sink complains of, with the key of the settings.
fn told(ConfigError { key, problem }: ConfigError) -> String {
    let key = if key == "headers" { "request_headers" } else { key };
    format!("`{key}` {problem}")
}

fn signing(secret: &EndpointSecret) -> SigningSecret {
    SigningSecret { secret: SecretString::from(secret.text.as_str()), until: secret.expires_at }
}

impl Endpoints for WebhookEndpoints {
    fn sink(&self, endpoint: &Endpoint, settings: &EndpointSettings) -> Result<Arc<dyn Sink>, String> {
        Ok(Arc::new(self.webhook(settings, &endpoint.secrets)?))
    }
}
