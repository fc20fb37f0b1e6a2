//! The attempt itself.

use std::time::SystemTime;

use async_trait::async_trait;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use postbox_core::callback::CallbackMark;
use postbox_core::event::Payload;
use postbox_core::outcome::{FailureClass, Outcome};
use postbox_core::sink::{Attempt, Sink};

use super::answer;
use super::config::{WhatsappConfig, about_base_url};
use super::message;
use super::token::Authorization;
use crate::http_client::{Client, ConfigError, no_answer};

/// Sends messages from one business phone number.
///
/// Runs inside a tokio runtime; each open connection is a task of its own there.
pub struct WhatsappSink {
    head: HeaderMap,
    authorization: Authorization,
    language: String,
    client: Client,
}

impl std::fmt::Debug for WhatsappSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WhatsappSink").field("language", &self.language).finish_non_exhaustive()
    }
}

impl WhatsappSink {
    /// Checks `config` and prepares everything that does not change between attempts. Connects to nothing.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub fn new(config: WhatsappConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let client = Client::new(&config.client()).map_err(about_base_url)?;
        let mut head = client.head();
        head.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { head, authorization: Authorization::new(config.token)?, language: config.language, client })
    }
}

#[async_trait]
impl Sink for WhatsappSink {
    async fn deliver(&self, attempt: &Attempt) -> Outcome {
        let Payload::Inline(payload) = &attempt.event.payload else {
            return Outcome::NotStarted("the payload was not loaded before the attempt".to_owned());
        };
        let mark = CallbackMark { event_id: attempt.event.event_id, attempt: attempt.number };
        let body = match message::request(payload, &self.language, mark) {
            Ok(body) => body,
            Err(refusal) => return no_answer(FailureClass::Permanent, &refusal.to_string()),
        };
        let mut headers = self.head.clone();
        headers.insert(AUTHORIZATION, self.authorization.header());
        match self.client.post(headers, body.into_bytes(), attempt.timeout).await {
            Ok(answer) => answer::outcome(&answer, SystemTime::now()),
            Err(outcome) => outcome,
        }
    }
}
