//! One line per request.

use jiff::Timestamp;
use serde::Serialize;

use super::delivery::Delivery;
use super::memory::Mark;
use super::mood::Decision;
use crate::moment::show_moment_exactly;
use crate::output::printable;

/// Characters of a body that are shown.
const SHOWN_BODY_CHARS: usize = 4_096;

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// One JSON object each.
    pub(crate) json: bool,
    /// With the body.
    pub(crate) body: bool,
}

/// Whether the signature fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signature {
    /// No secret was given to verify with.
    Unchecked,
    Verified,
    Refused(String),
}

/// Everything about one request.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) at: Timestamp,
    pub(super) delivery: &'a Delivery,
    pub(super) decision: Decision,
    pub(super) signature: &'a Signature,
    pub(super) mark: Mark,
    pub(super) body: &'a [u8],
}

/// The fields for programs; docs/configuration.md describes them.
#[derive(Serialize)]
struct Fields<'a> {
    at: Timestamp,
    /// `null` when no answer is given.
    status: Option<u16>,
    event_id: Option<&'a str>,
    #[serde(rename = "type")]
    event_type: Option<&'a str>,
    aggregate_type: Option<&'a str>,
    aggregate_id: Option<&'a str>,
    sequence: Option<u64>,
    attempt: Option<u32>,
    replay: bool,
    verified: Option<bool>,
    problem: Option<&'a str>,
    duplicate: bool,
    out_of_order: bool,
    expected_sequence: Option<u64>,
    body_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl Line<'_> {
    pub(super) fn render(&self, style: Style) -> String {
        let body = style.body.then(|| shown(self.body));
        if style.json { self.json(body) } else { self.text(body) }
    }

    fn json(&self, body: Option<String>) -> String {
        let delivery = self.delivery;
        let fields = Fields {
            at: self.at,
            status: match self.decision {
                Decision::Status(status) => Some(status.as_u16()),
                Decision::Hang => None,
            },
            event_id: delivery.event_id.as_deref(),
            event_type: delivery.event_type.as_deref(),
            aggregate_type: delivery.aggregate_type.as_deref(),
            aggregate_id: delivery.aggregate_id.as_deref(),
            sequence: delivery.sequence,
            attempt: delivery.attempt,
            replay: delivery.replay,
            verified: match self.signature {
                Signature::Unchecked => None,
                Signature::Verified => Some(true),
                Signature::Refused(_) => Some(false),
            },
            problem: match self.signature {
                Signature::Refused(reason) => Some(reason),
                _ => None,
            },
            duplicate: self.mark == Mark::Duplicate,
            out_of_order: matches!(self.mark, Mark::Gap(_) | Mark::Stale(_)),
            expected_sequence: match self.mark {
                Mark::Gap(expected) => Some(expected),
                Mark::Stale(last) => Some(last + 1),
                Mark::Fine | Mark::Duplicate => None,
            },
            body_bytes: self.body.len(),
            body,
        };
        serde_json::to_string(&fields).expect("texts and numbers are written without an error")
    }

    fn text(&self, body: Option<String>) -> String {
        let name = |name: &Option<String>| name.as_deref().map_or_else(|| "?".to_owned(), printable);
        let delivery = self.delivery;
        let status = match self.decision {
            Decision::Status(status) => status.as_u16().to_string(),
            Decision::Hang => "---".to_owned(),
        };
        let mut line = format!(
            "{}  {status}  {}  {}/{}",
            show_moment_exactly(self.at),
            name(&delivery.event_type),
            name(&delivery.aggregate_type),
            name(&delivery.aggregate_id),
        );
        if let Some(sequence) = delivery.sequence {
            line += &format!(" #{sequence}");
        }
        if let Some(attempt) = delivery.attempt {
            line += &format!("  attempt {attempt}");
        }
        if delivery.replay {
            line += "  replay";
        }
        match self.signature {
            Signature::Unchecked => {}
            Signature::Verified => line += "  verified",
            Signature::Refused(reason) => line += &format!("  NOT VERIFIED: {reason}"),
        }
        match self.mark {
            Mark::Fine => {}
            Mark::Duplicate => line += "  DUPLICATE",
            Mark::Stale(last) => line += &format!("  OUT OF ORDER: after #{last}"),
            Mark::Gap(expected) => line += &format!("  OUT OF ORDER: #{expected} is missing"),
        }
        match body {
            Some(body) => format!("{line}\n    {}", printable(&body)),
            None => line,
        }
    }
}

/// The beginning of a body as text.
fn shown(body: &[u8]) -> String {
    // Cut before decoding, so that a large one costs no more than what is shown of it.
    let beginning = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN_BODY_CHARS)]);
    let mut text: String = beginning.chars().take(SHOWN_BODY_CHARS).collect();
    if text.len() < body.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn render(mark: Mark, signature: &Signature, style: Style, body: &[u8]) -> String {
        let delivery = Delivery {
            event_id: Some("e1".into()),
            event_type: Some("order.\u{1b}[2Jconfirmed".into()),
            aggregate_type: Some("order".into()),
            aggregate_id: Some("42".into()),
            sequence: Some(3),
            attempt: Some(2),
            replay: true,
        };
        let at = "2026-01-02T03:04:05.678Z".parse().unwrap();
        let decision = Decision::Status(StatusCode::OK);
        Line { at, delivery: &delivery, decision, signature, mark, body }.render(style)
    }

    const TEXT: Style = Style { json: false, body: false };

    #[test]
    fn a_line_tells_everything_and_cannot_drive_the_terminal() {
        assert_eq!(
            render(Mark::Gap(2), &Signature::Verified, TEXT, b"{}"),
            "2026-01-02T03:04:05.678Z  200  order.\u{fffd}[2Jconfirmed  order/42 #3  attempt 2  replay  verified  \
             OUT OF ORDER: #2 is missing"
        );
        let refused = Signature::Refused("no signature fits".into());
        let line = render(Mark::Duplicate, &refused, TEXT, b"{}");
        assert!(line.ends_with("NOT VERIFIED: no signature fits  DUPLICATE"), "{line}");
    }

    #[test]
    fn a_body_is_shown_only_when_asked_for_and_bounded() {
        let body = "ü".repeat(100_000);
        assert!(!render(Mark::Fine, &Signature::Unchecked, TEXT, body.as_bytes()).contains('ü'));
        let style = Style { body: true, ..TEXT };
        let line = render(Mark::Fine, &Signature::Unchecked, style, body.as_bytes());
        assert_eq!(line.matches('ü').count(), SHOWN_BODY_CHARS);
        assert!(line.ends_with('…'));
        assert!(render(Mark::Fine, &Signature::Unchecked, style, b"{}").ends_with("\n    {}"));
    }

    #[test]
    fn json_is_one_object_with_stable_fields() {
        let style = Style { json: true, body: true };
        let line = render(Mark::Stale(4), &Signature::Unchecked, style, b"{}");
        assert!(!line.contains('\n'));
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["verified"], serde_json::Value::Null);
        assert_eq!((&json["out_of_order"], &json["expected_sequence"]), (&true.into(), &5.into()));
        assert_eq!((&json["sequence"], &json["body"]), (&3.into(), &"{}".into()));
    }
}
