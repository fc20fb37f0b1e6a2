//! CloudEvents 1.0 over HTTP: <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md>,
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md>.
//!
//! | attribute | of the event |
//! |---|---|
//! | `id` | event id |
//! | `source` | configured |
//! | `type` | event type |
//! | `subject`, `partitionkey` | aggregate type, `/`, aggregate id |
//! | `time` | when it was written |
//! | `sequence` | number within its aggregate, with leading zeros: the extension asks for texts that sort |
//! | `traceparent`, `tracestate` | stored trace context |
//!
//! `sequence` counts within `subject`, not within `source`, so `sequencetype` (whose only value promises the latter) is
//! left out.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::{HeaderName, HeaderValue};
use postbox_core::event::Event;

use super::super::trace_context::TraceContext;
use super::Message;

/// Of a header (HTTP binding, 3.1.3.1); what follows is the attribute's name.
const PREFIX: &str = "ce-";

/// Headers and values in the order in which they are written; all are of CloudEvents' types String, URI or Timestamp.
type Attributes<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// Attributes in headers, the payload as the body.
pub(super) fn binary(
    source: &str,
    event: &Event,
    payload: &str,
    trace: Option<&TraceContext>,
) -> Result<Message, String> {
    let headers = attributes(source, event, trace)?
        .into_iter()
        .map(|(name, value)| {
            let value = HeaderValue::try_from(percent_encoded(&value)).expect("it is visible ASCII");
            (HeaderName::from_static(name), value)
        })
        .collect();
    Ok(Message { headers, body: payload.as_bytes().to_vec() })
}

/// Attributes and payload in one JSON object.
pub(super) fn structured(
    source: &str,
    event: &Event,
    payload: &str,
    trace: Option<&TraceContext>,
) -> Result<Vec<u8>, String> {
    let mut body = b"{".to_vec();
    let content_type = ("ce-datacontenttype", Cow::Borrowed("application/json"));
    for (header, value) in attributes(source, event, trace)?.into_iter().chain([content_type]) {
        let name = header.trim_start_matches(PREFIX);
        serde_json::to_writer(&mut body, name).expect("a string is written to memory without an error");
        body.push(b':');
        serde_json::to_writer(&mut body, &value).expect("a string is written to memory without an error");
        body.push(b',');
    }
    body.extend_from_slice(b"\"data\":");
    body.extend_from_slice(payload.as_bytes());
    body.push(b'}');
    Ok(body)
}

fn attributes<'a>(
    source: &'a str,
    event: &'a Event,
    trace: Option<&'a TraceContext>,
) -> Result<Attributes<'a>, String> {
    if event.event_type.is_empty() {
        return Err("an event without a type cannot be a CloudEvent".to_owned());
    }
    let subject = format!("{}/{}", event.aggregate_type, event.aggregate_id);
    if !event.event_type.chars().chain(subject.chars()).all(is_allowed) {
        return Err(
            "the event's type or aggregate holds a control character or noncharacter, which CloudEvents do \
                    not allow: choose another envelope"
                .to_owned(),
        );
    }
    let mut attributes: Attributes<'a> = vec![
        ("ce-specversion", "1.0".into()),
        ("ce-id", event.event_id.to_string().into()),
        ("ce-source", source.into()),
        ("ce-type", event.event_type.as_str().into()),
        ("ce-subject", subject.clone().into()),
        ("ce-time", event.created_at.to_string().into()),
        ("ce-partitionkey", subject.into()),
        // As many digits as the largest number has.
        ("ce-sequence", format!("{:019}", event.aggregate_seq).into()),
    ];
    if let Some(trace) = trace {
        attributes.push(("ce-traceparent", trace.parent().into()));
        attributes.extend(trace.state().map(|state| ("ce-tracestate", state.into())));
    }
    Ok(attributes)
}

/// Type `String`: no control characters and no noncharacters (surrogates are no `char`).
fn is_allowed(c: char) -> bool {
    let code = u32::from(c);
    !c.is_control() && !(0xfdd0..=0xfdef).contains(&code) && code & 0xfffe != 0xfffe
}

/// HTTP binding, 3.1.3.2: space, double quote, percent and everything outside of visible ASCII is escaped.
fn percent_encoded(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'"' | b'%' => {}
            0x21..=0x7e => {
                encoded.push(char::from(byte));
                continue;
            }
            _ => {}
        }
        write!(encoded, "%{byte:02X}").expect("memory takes every write");
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use postbox_testkit::sink_conformance;

    use super::*;

    const TRACE: &str =
        r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1"}"#;

    fn event(event_type: &str, aggregate_id: &str) -> Event {
        Event {
            event_id: "0190f2a4-6c3e-7b1a-8c2d-000000000001".parse().unwrap(),
            event_type: event_type.to_owned(),
            created_at: "2026-01-02T03:04:05.678901Z".parse().unwrap(),
            ..Arc::unwrap_or_clone(sink_conformance::event(aggregate_id, 3, ""))
        }
    }

    #[test]
    fn binary_mode_is_the_payload_with_its_attributes_in_headers() {
        let trace = TraceContext::of(TRACE);
        let message =
            binary("/shop", &event("order.confirmed", "42"), r#"{"total": 12.50}"#, trace.as_ref()).unwrap();
        assert_eq!(message.body, br#"{"total": 12.50}"#);
        let headers: Vec<(&str, &str)> =
            message.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        let expected = [
            ("ce-specversion", "1.0"),
            ("ce-id", "0190f2a4-6c3e-7b1a-8c2d-000000000001"),
            ("ce-source", "/shop"),
            ("ce-type", "order.confirmed"),
            ("ce-subject", "order/42"),
            ("ce-time", "2026-01-02T03:04:05.678901Z"),
            ("ce-partitionkey", "order/42"),
            ("ce-sequence", "0000000000000000003"),
            ("ce-traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ("ce-tracestate", "a=1"),
        ];
        assert_eq!(headers, expected);
    }

    #[test]
    fn structured_mode_is_one_object_around_the_exact_payload() {
        let payload = r#"{ "a" : 1e2 ,"a":"\u0000 \ud800 😀" }"#;
        let body = structured("/shop", &event("order.confirmed", "4\"2"), payload, None).unwrap();
        assert_eq!(
            String::from_utf8(body).unwrap(),
            format!(
                concat!(
                    r#"{{"specversion":"1.0","id":"0190f2a4-6c3e-7b1a-8c2d-000000000001","source":"/shop","#,
                    r#""type":"order.confirmed","subject":"order/4\"2","time":"2026-01-02T03:04:05.678901Z","#,
                    r#""partitionkey":"order/4\"2","sequence":"0000000000000000003","#,
                    r#""datacontenttype":"application/json","data":{}}}"#
                ),
                payload
            )
        );
    }

    #[test]
    fn header_values_are_escaped_as_the_binding_shows() {
        assert_eq!(percent_encoded("Euro € 😀"), "Euro%20%E2%82%AC%20%F0%9F%98%80");
        assert_eq!(percent_encoded("100%\"~!\u{7f}"), "100%25%22~!%7F");
    }

    #[test]
    fn what_cannot_be_a_cloud_event_is_refused_with_the_reason() {
        for (event_type, aggregate_id, hint) in [
            ("", "42", "without a type"),
            ("a\nb", "42", "control character"),
            ("a", "\u{0}", "control character"),
            ("a", "\u{85}", "control character"),
            ("a", "\u{fdd0}", "noncharacter"),
            ("a", "\u{1fffe}", "noncharacter"),
        ] {
            let reason = binary("/shop", &event(event_type, aggregate_id), "{}", None).unwrap_err();
            assert!(reason.contains(hint), "{reason}");
            structured("/shop", &event(event_type, aggregate_id), "{}", None).unwrap_err();
        }
        binary("/shop", &event("a", "\u{fffd}\u{202e}"), "{}", None).unwrap();
    }
}
