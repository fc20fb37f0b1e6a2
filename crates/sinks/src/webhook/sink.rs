//! The attempt itself.

use std::time::SystemTime;

use async_trait::async_trait;
use http::HeaderMap;
use postbox_core::event::Payload;
use postbox_core::outcome::{FailureClass, Outcome};
use postbox_core::sink::{Attempt, Sink};

use super::answer;
use super::config::WebhookConfig;
use super::envelope::Envelope;
use super::head::Head;
use super::trace_context::TraceContext;
use crate::http_client::{Client, ConfigError, no_answer};

/// Delivers events by HTTP POST to one URL.
///
/// Runs inside a tokio runtime; each open connection is a task of its own there.
pub struct WebhookSink {
    envelope: Envelope,
    head: Head,
    client: Client,
}

impl std::fmt::Debug for WebhookSink {
    /// Leaves out the target: its path or query may hold a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookSink").field("head", &self.head).finish_non_exhaustive()
    }
}

impl WebhookSink {
    /// Checks `config` and prepares everything that does not change between attempts. Connects to nothing.
    ///
    /// # Errors
    /// When the URL, a secret, a header, a file of certificates or the proxy cannot be used.
    pub fn new(config: WebhookConfig) -> Result<Self, ConfigError> {
        let client = Client::new(&config.client())?;
        Ok(Self { head: Head::new(&config, client.head())?, client, envelope: config.envelope })
    }

    /// The request's headers and body, or why this event cannot be sent in this destination's envelope.
    fn request(&self, attempt: &Attempt, payload: &str) -> Result<(HeaderMap, Vec<u8>), String> {
        let trace = attempt.event.headers.as_deref().and_then(TraceContext::of);
        let message = self.envelope.wrap(&attempt.event, payload, trace.as_ref())?;
        let now = jiff::Timestamp::now().as_second();
        Ok((self.head.headers(attempt, &message, trace.as_ref(), now), message.body))
    }
}

#[async_trait]
impl Sink for WebhookSink {
    async fn deliver(&self, attempt: &Attempt) -> Outcome {
        let Payload::Inline(payload) = &attempt.event.payload else {
            return Outcome::NotStarted("the payload was not loaded before the attempt".to_owned());
        };
        let (headers, body) = match self.request(attempt, payload) {
            Ok(request) => request,
            Err(reason) => return no_answer(FailureClass::Permanent, &reason),
        };
        match self.client.post(headers, body, attempt.timeout).await {
            Ok(answer) => answer::outcome(answer.status, &answer.headers, &answer.body, SystemTime::now()),
            Err(outcome) => outcome,
        }
    }
}
