//! The headers of a request: those that never change are prepared once.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use postbox_core::sink::Attempt;
use secrecy::ExposeSecret;

use super::config::WebhookConfig;
use super::envelope::Message;
use super::trace_context::TraceContext;
use crate::http_client::ConfigError;
use crate::standard_webhooks::Signer;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");
const EVENT_SEQUENCE: HeaderName = HeaderName::from_static("x-event-sequence");
const ATTEMPT: HeaderName = HeaderName::from_static("postbox-attempt");
const REPLAY: HeaderName = HeaderName::from_static("postbox-replay");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Headers that only Postbox sets, because their meaning is part of what it promises or of HTTP's framing.
const RESERVED: [&str; 18] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "postbox-attempt",
    "postbox-replay",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
    "x-event-sequence",
    "x-idempotency-key",
];

/// What every request to one destination begins with.
#[derive(Debug)]
pub(super) struct Head {
    // Configured values are marked sensitive, so that Debug does not show them.
    fixed: HeaderMap,
    signer: Option<Signer>,
}

impl Head {
    /// Those of `config` on top of `fixed`, with which every request to its receiver begins.
    pub(super) fn new(config: &WebhookConfig, mut fixed: HeaderMap) -> Result<Self, ConfigError> {
        fixed.insert(CONTENT_TYPE, config.envelope.content_type());
        for (name, value) in &config.headers {
            let wrong = |problem: &str| ConfigError::new("headers", format!("`{name}` {problem}"));
            let parsed = HeaderName::try_from(name.as_str()).map_err(|_| wrong("is no valid header name"))?;
            if RESERVED.contains(&parsed.as_str()) || config.envelope.owns(&parsed) {
                return Err(wrong("is set by Postbox itself: take it out"));
            }
            let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
                wrong("has a value with a line break or another character that headers cannot hold")
            })?;
            value.set_sensitive(true);
            fixed.insert(parsed, value);
        }
        let signer = match config.secrets.as_slice() {
            [] => None,
            secrets => {
                Some(Signer::new(secrets).map_err(|error| ConfigError::new("secret", error.to_string()))?)
            }
        };
        Ok(Self { fixed, signer })
    }

    /// The headers of one attempt, signed over the body of `message` at `now` (seconds of the Unix epoch).
    pub(super) fn headers(
        &self,
        attempt: &Attempt,
        message: &Message,
        trace: Option<&TraceContext>,
        now: i64,
    ) -> HeaderMap {
        let mut headers = self.fixed.clone();
        headers.extend(message.headers.iter().cloned());
        let mut buffer = uuid::Uuid::encode_buffer();
        let id: &str = attempt.event.event_id.hyphenated().encode_lower(&mut buffer);
        let id_value = HeaderValue::from_str(id).expect("a UUID is valid in a header");
        headers.insert(EVENT_SEQUENCE, HeaderValue::from(attempt.event.aggregate_seq));
        headers.insert(ATTEMPT, HeaderValue::from(attempt.number));
        if attempt.replay {
            headers.insert(REPLAY, HeaderValue::from_static("true"));
        }
        if let Some((parent, state)) = trace.map(TraceContext::headers) {
            headers.insert(TRACE_PARENT, parent);
            state.map(|state| headers.insert(TRACE_STATE, state));
        }
        if let Some(signer) = &self.signer {
            let signature = HeaderValue::try_from(signer.sign(id, now, &message.body));
            headers.insert(WEBHOOK_ID, id_value.clone());
            headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(now));
            headers.insert(WEBHOOK_SIGNATURE, signature.expect("signatures are visible ASCII"));
        }
        headers.insert(IDEMPOTENCY_KEY, id_value);
        headers
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use postbox_core::event::Event;
    use postbox_testkit::sink_conformance;

    use super::super::envelope::Envelope;
    use super::*;
    use crate::http_client::Client;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn head(config: &WebhookConfig) -> Result<Head, ConfigError> {
        Head::new(config, Client::new(&config.client()).unwrap().head())
    }

    fn attempt(stored: Option<&str>, replay: bool) -> Attempt {
        let event = Event {
            event_id: "0190f2a4-6c3e-7b1a-8c2d-000000000001".parse().unwrap(),
            headers: stored.map(str::to_owned),
            ..Arc::unwrap_or_clone(sink_conformance::event("42", 3, "{}"))
        };
        Attempt { number: 2, replay, ..sink_conformance::attempt(Arc::new(event)) }
    }

    fn message(body: &[u8]) -> Message {
        Message { headers: Vec::new(), body: body.to_vec() }
    }

    fn sent(stored: Option<&str>, replay: bool) -> HeaderMap {
        let trace = stored.and_then(TraceContext::of);
        head(&WebhookConfig::new("https://billing.example/hooks")).unwrap().headers(
            &attempt(stored, replay),
            &message(b"{}"),
            trace.as_ref(),
            1,
        )
    }

    #[test]
    fn every_request_says_which_event_which_sequence_and_which_attempt_it_is() {
        let headers = sent(None, false);
        assert_eq!(headers["x-idempotency-key"], "0190f2a4-6c3e-7b1a-8c2d-000000000001");
        assert_eq!(headers["x-event-sequence"], "3");
        assert_eq!(headers["postbox-attempt"], "2");
        assert_eq!(headers["host"], "billing.example");
        assert_eq!(headers["content-type"], "application/json");
        assert!(headers["user-agent"].to_str().unwrap().starts_with("postbox/"));
        assert!(!headers.contains_key("postbox-replay"));
        assert!(!headers.contains_key("webhook-signature"));
    }

    #[test]
    fn a_replay_is_marked() {
        assert_eq!(sent(None, true)["postbox-replay"], "true");
    }

    #[test]
    fn the_trace_context_is_passed_on_if_it_is_one() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let stored = format!(r#"{{"traceparent":"{parent}","tracestate":"v=1","tenant":"acme"}}"#);
        let headers = sent(Some(&stored), false);
        assert_eq!(headers["traceparent"], parent);
        assert_eq!(headers["tracestate"], "v=1");
        assert!(!headers.contains_key("tenant"));
        assert!(!sent(Some(r#"{"traceparent":"00-aa-bb-01"}"#), false).contains_key("traceparent"));
    }

    #[test]
    fn with_a_secret_the_standard_webhooks_headers_verify() {
        let config =
            WebhookConfig { secrets: vec![SECRET.into()], ..WebhookConfig::new("https://billing.example") };
        let now = jiff::Timestamp::now().as_second();
        let headers =
            head(&config).unwrap().headers(&attempt(None, false), &message(b"{\"a\":1}"), None, now);
        let oracle = standardwebhooks::Webhook::new(SECRET).unwrap();
        oracle.verify(b"{\"a\":1}", &headers).unwrap();
        oracle.verify(b"{\"a\":2}", &headers).unwrap_err();
    }

    #[test]
    fn configured_headers_are_sent_and_never_shown() {
        let mut config = WebhookConfig::new("https://billing.example");
        config.headers = vec![("Authorization".to_owned(), "Bearer abc".into())];
        let head = head(&config).unwrap();
        assert_eq!(
            head.headers(&attempt(None, false), &message(b""), None, 1)["authorization"],
            "Bearer abc"
        );
        assert!(!format!("{head:?} {config:?}").contains("abc"));
    }

    #[test]
    fn an_envelope_s_own_headers_cannot_be_configured() {
        let mut config = WebhookConfig::new("https://billing.example");
        config.headers = vec![("ce-type".to_owned(), "x".into())];
        head(&config).unwrap();
        config.envelope = Envelope::named("cloudevents-binary", None).unwrap();
        assert!(head(&config).unwrap_err().problem.contains("set by Postbox"));
    }

    #[test]
    fn headers_that_cannot_be_sent_are_refused() {
        for (name, value, hint) in [
            ("a b", "x", "no valid header name"),
            ("x-a", "secret\nvalue", "line break"),
            ("Webhook-Id", "x", "set by Postbox"),
            ("content-length", "x", "set by Postbox"),
        ] {
            let mut config = WebhookConfig::new("https://billing.example");
            config.headers = vec![(name.to_owned(), value.into())];
            let error = head(&config).unwrap_err();
            assert!(error.problem.contains(hint), "{error}");
            assert!(!error.problem.contains("secret"), "{error}");
        }
    }
}
