//! What a request says of the event in it, whatever its envelope.

use serde::Deserialize;

use crate::receiver::Arrived;

/// Longest name that is kept, in characters; a producer's are at most 512 bytes long.
const MAX_NAME_CHARS: usize = 512;

/// One event in one request, as far as it can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) event_id: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) aggregate_type: Option<String>,
    pub(super) aggregate_id: Option<String>,
    pub(super) sequence: Option<u64>,
    pub(super) attempt: Option<u32>,
    pub(super) replay: bool,
}

/// The fields of the JSON envelope, and of a CloudEvent in structured mode.
#[derive(Default, Deserialize)]
struct Fields {
    r#type: Option<String>,
    aggregate_type: Option<String>,
    aggregate_id: Option<String>,
    subject: Option<String>,
}

impl Delivery {
    pub(super) fn read(request: &Arrived) -> Self {
        let fields = match request.header("ce-type") {
            Some(event_type) => Fields {
                r#type: Some(percent_decoded(event_type)),
                subject: request.header("ce-subject").map(percent_decoded),
                ..Fields::default()
            },
            None => serde_json::from_slice(&request.body).unwrap_or_default(),
        };
        let (of_subject, id_of_subject) =
            match fields.subject.as_deref().and_then(|text| text.split_once('/')) {
                Some((aggregate_type, id)) => (Some(aggregate_type.to_owned()), Some(id.to_owned())),
                None => (None, None),
            };
        let number = |name| request.header(name)?.parse().ok();
        Self {
            event_id: bounded(
                request.header("x-idempotency-key").filter(|id| !id.is_empty()).map(str::to_owned),
            ),
            event_type: bounded(fields.r#type),
            aggregate_type: bounded(fields.aggregate_type.or(of_subject)),
            aggregate_id: bounded(fields.aggregate_id.or(id_of_subject)),
            sequence: number("x-event-sequence"),
            attempt: number("postbox-attempt").and_then(|number: u64| u32::try_from(number).ok()),
            replay: request.header("postbox-replay") == Some("true"),
        }
    }

    /// The aggregate it is about, if the envelope tells.
    pub(super) fn lane(&self) -> Option<(String, String)> {
        Some((self.aggregate_type.clone()?, self.aggregate_id.clone()?))
    }
}

fn bounded(name: Option<String>) -> Option<String> {
    name.map(|name| name.chars().take(MAX_NAME_CHARS).collect())
}

/// CloudEvents' HTTP binding, 3.1.3.2. What is no escape stays as it is.
fn percent_decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderName, Method};

    use super::*;

    fn read(headers: &[(&'static str, &'static str)], body: &'static str) -> Delivery {
        let headers: HeaderMap = headers
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        let body = Bytes::from_static(body.as_bytes());
        Delivery::read(&Arrived { method: Method::POST, uri: http::Uri::from_static("/"), headers, body })
    }

    #[test]
    fn the_aggregate_is_found_in_every_envelope_that_names_it() {
        let expected = Delivery {
            event_type: Some("order confirmed".into()),
            aggregate_type: Some("order".into()),
            aggregate_id: Some("4/2".into()),
            ..Delivery::default()
        };
        let json = r#"{"type":"order confirmed","aggregate_type":"order","aggregate_id":"4/2","data":{}}"#;
        assert_eq!(read(&[], json), expected);
        let structured = r#"{"specversion":"1.0","type":"order confirmed","subject":"order/4/2","data":[]}"#;
        assert_eq!(read(&[], structured), expected);
        let binary = [("ce-type", "order%20confirmed"), ("ce-subject", "order/4/2")];
        assert_eq!(read(&binary, r#"{"type":"something else"}"#), expected);
    }

    #[test]
    fn what_identifies_it_stands_in_headers() {
        let headers = [
            ("x-idempotency-key", "abc"),
            ("x-event-sequence", "3"),
            ("postbox-attempt", "2"),
            ("postbox-replay", "true"),
        ];
        let delivery = read(&headers, "[1, 2]");
        assert_eq!(delivery.event_id.as_deref(), Some("abc"));
        assert_eq!((delivery.sequence, delivery.attempt, delivery.replay), (Some(3), Some(2), true));
        assert_eq!(delivery.lane(), None);
    }

    #[test]
    fn strange_escapes_do_no_harm() {
        assert_eq!(percent_decoded("100%25%F0%9F%98%80%zz%4"), "100%😀%zz%4");
    }
}
