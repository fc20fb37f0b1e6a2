//! The body: a JSON object around the exact stored payload.

use postbox_core::event::Event;

/// Bytes of the envelope beside its texts: keys, quotes, UUID, time and sequence.
const FRAME_BYTES: usize = 256;

/// Writes `{"event_id","type","timestamp","aggregate_type","aggregate_id","sequence","data"}`, `data` being `payload`
/// byte for byte. The buffer is allocated once; what it holds is what is signed and sent.
pub(super) fn write(event: &Event, payload: &str) -> Vec<u8> {
    let texts = event.event_type.len() + event.aggregate_type.len() + event.aggregate_id.len();
    let mut body = Vec::with_capacity(FRAME_BYTES + texts + payload.len());
    let mut uuid = uuid::Uuid::encode_buffer();
    body.extend_from_slice(b"{\"event_id\":\"");
    body.extend_from_slice(event.event_id.hyphenated().encode_lower(&mut uuid).as_bytes());
    body.extend_from_slice(b"\",\"type\":");
    text(&mut body, &event.event_type);
    body.extend_from_slice(b",\"timestamp\":\"");
    display(&mut body, &event.created_at);
    body.extend_from_slice(b"\",\"aggregate_type\":");
    text(&mut body, &event.aggregate_type);
    body.extend_from_slice(b",\"aggregate_id\":");
    text(&mut body, &event.aggregate_id);
    body.extend_from_slice(b",\"sequence\":");
    display(&mut body, &event.aggregate_seq);
    body.extend_from_slice(b",\"data\":");
    body.extend_from_slice(payload.as_bytes());
    body.push(b'}');
    body
}

fn text(body: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(body, value).expect("a string is written to memory without an error");
}

fn display(body: &mut Vec<u8>, value: &dyn std::fmt::Display) {
    use std::io::Write as _;
    write!(body, "{value}").expect("memory takes every write");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use postbox_testkit::sink_conformance;

    use super::*;

    fn event() -> Event {
        Event {
            event_id: "0190f2a4-6c3e-7b1a-8c2d-000000000001".parse().unwrap(),
            event_type: "order.confirmed 😀".to_owned(),
            created_at: "2026-01-02T03:04:05.678901Z".parse().unwrap(),
            ..Arc::unwrap_or_clone(sink_conformance::event("4\"2\\\u{1}", 3, ""))
        }
    }

    #[test]
    fn the_envelope_has_the_documented_shape() {
        assert_eq!(
            String::from_utf8(write(&event(), r#"{"total":12.50}"#)).unwrap(),
            concat!(
                r#"{"event_id":"0190f2a4-6c3e-7b1a-8c2d-000000000001","type":"order.confirmed 😀","#,
                r#""timestamp":"2026-01-02T03:04:05.678901Z","aggregate_type":"order","#,
                r#""aggregate_id":"4\"2\\\u0001","sequence":3,"data":{"total":12.50}}"#
            )
        );
    }

    #[test]
    fn the_payload_is_sent_byte_for_byte() {
        for payload in
            [r#"{ "a" : 1e2 ,"a":"\u0000 \ud800 😀" }"#, "null", "[1,\n2]", "12345678901234567890.10"]
        {
            let body = String::from_utf8(write(&event(), payload)).unwrap();
            assert!(body.ends_with(&format!(",\"data\":{payload}}}")), "{body}");
        }
    }

    #[test]
    fn the_buffer_is_allocated_once() {
        let payload = format!("\"{}\"", "x".repeat(100_000));
        let body = write(&event(), &payload);
        assert!(body.capacity() <= FRAME_BYTES + 64 + payload.len(), "{}", body.capacity());
    }
}
