//! The envelopes there are.

use http::{HeaderName, HeaderValue};
use postbox_core::event::Event;

use super::super::trace_context::TraceContext;
use super::{cloud_events, json};
use crate::http_client::ConfigError;

/// Source of CloudEvents when none is configured.
pub const DEFAULT_SOURCE: &str = "/postbox";

/// Longest `source`, in bytes.
const MAX_SOURCE_BYTES: usize = 512;

/// How an event is put into a request. The headers that identify it (`x-idempotency-key`, `x-event-sequence`, …) and the
/// signature are the same in all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Envelope {
    /// A JSON object with the event's fields and the payload under `data`.
    #[default]
    Json,
    /// CloudEvents 1.0 in binary mode: the payload, its attributes in `ce-…` headers.
    CloudEventsBinary {
        /// See [`Envelope::named`].
        source: String,
    },
    /// CloudEvents 1.0 in structured mode: attributes and payload in one JSON object.
    CloudEventsStructured {
        /// See [`Envelope::named`].
        source: String,
    },
    /// The payload as it is.
    Raw,
}

/// One event as it is sent.
#[derive(Debug)]
pub(in crate::webhook) struct Message {
    /// Headers besides those that every envelope has.
    pub(in crate::webhook) headers: Vec<(HeaderName, HeaderValue)>,
    /// What is signed and sent.
    pub(in crate::webhook) body: Vec<u8>,
}

impl Envelope {
    /// The words for them, in the order of the variants.
    pub const WORDS: [&'static str; 4] = ["json", "cloudevents-binary", "cloudevents-structured", "raw"];

    /// The envelope of this word. `source` says where CloudEvents come from: a URI or a path such as `/shop`, which
    /// together with the event's id is unique. Without it, [`DEFAULT_SOURCE`].
    ///
    /// # Errors
    /// When there is no such envelope, when `source` is no URI reference, or belongs to an envelope that has none.
    pub fn named(word: &str, source: Option<&str>) -> Result<Self, ConfigError> {
        let envelope = match word {
            "json" => Self::Json,
            "raw" => Self::Raw,
            "cloudevents-binary" => Self::CloudEventsBinary { source: checked(source)? },
            "cloudevents-structured" => Self::CloudEventsStructured { source: checked(source)? },
            _ => {
                let words = Self::WORDS.join(", ");
                return Err(ConfigError::new("envelope", format!("is none of {words}")));
            }
        };
        match (&envelope, source) {
            (Self::Json | Self::Raw, Some(_)) => {
                Err(ConfigError::new("source", "is for CloudEvents, and the envelope is another"))
            }
            _ => Ok(envelope),
        }
    }

    pub(in crate::webhook) fn content_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json | Self::CloudEventsBinary { .. } | Self::Raw => "application/json",
            Self::CloudEventsStructured { .. } => "application/cloudevents+json; charset=utf-8",
        })
    }

    /// Whether only the envelope may set this header.
    pub(in crate::webhook) fn owns(&self, name: &HeaderName) -> bool {
        matches!(self, Self::CloudEventsBinary { .. }) && name.as_str().starts_with("ce-")
    }

    /// Puts `payload`, byte for byte, into the envelope.
    ///
    /// # Errors
    /// Why this event does not fit into it, in one line.
    pub(in crate::webhook) fn wrap(
        &self,
        event: &Event,
        payload: &str,
        trace: Option<&TraceContext>,
    ) -> Result<Message, String> {
        let plain = |body| Message { headers: Vec::new(), body };
        match self {
            Self::Json => Ok(plain(json::write(event, payload))),
            Self::Raw => Ok(plain(payload.as_bytes().to_vec())),
            Self::CloudEventsBinary { source } => cloud_events::binary(source, event, payload, trace),
            Self::CloudEventsStructured { source } => {
                cloud_events::structured(source, event, payload, trace).map(plain)
            }
        }
    }
}

/// CloudEvents 1.0.2, `source`: a non-empty URI reference (RFC 3986, 2: these characters and escapes).
fn checked(source: Option<&str>) -> Result<String, ConfigError> {
    let source = source.unwrap_or(DEFAULT_SOURCE);
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    let escaped = source.split('%').skip(1).all(|rest| {
        rest.get(..2).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    });
    if source.is_empty() || source.len() > MAX_SOURCE_BYTES || !source.bytes().all(fine) || !escaped {
        return Err(ConfigError::new(
            "source",
            format!(
                "is no URI or path of at most {MAX_SOURCE_BYTES} bytes: write for example \"/shop\" or \
                 \"https://shop.example\""
            ),
        ));
    }
    Ok(source.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_its_envelope() {
        let source = || DEFAULT_SOURCE.to_owned();
        let envelopes = [
            Envelope::Json,
            Envelope::CloudEventsBinary { source: source() },
            Envelope::CloudEventsStructured { source: source() },
            Envelope::Raw,
        ];
        for (word, envelope) in Envelope::WORDS.into_iter().zip(envelopes) {
            assert_eq!(Envelope::named(word, None).unwrap(), envelope);
        }
        assert!(
            Envelope::named("xml", None).unwrap_err().problem.contains("none of json, cloudevents-binary")
        );
    }

    #[test]
    fn a_source_is_a_uri_reference_and_only_for_cloud_events() {
        for source in ["/shop", "https://shop.example/eu", "urn:uuid:6e8bc430", "a%20b"] {
            Envelope::named("cloudevents-binary", Some(source)).unwrap();
        }
        for source in ["", "a b", "ü", "a\nb", "100%", "%zz", "<shop>", &"x".repeat(513)] {
            let error = Envelope::named("cloudevents-structured", Some(source)).expect_err(source);
            assert_eq!(error.key, "source");
        }
        assert_eq!(Envelope::named("raw", Some("/shop")).unwrap_err().key, "source");
    }
}
