//! Telling the whole story of an event in lines that a person reads.

use std::fmt::Write;

use postbox_core::operations::{AttemptStory, DeliveryStory, Story};
use postbox_core::reports::ReportStory;

use crate::moment::show_moment_exactly as at;
use crate::output::printable;

/// The event and each of its deliveries.
pub(crate) fn tell(story: &Story) -> String {
    let event = &story.event;
    let mut text = String::new();
    line(&mut text, "event", &event.event_id.to_string());
    line(&mut text, "type", &event.event_type);
    line(&mut text, "aggregate", &format!("{} {}", event.aggregate_type, event.aggregate_id));
    line(&mut text, "sequence", &event.aggregate_seq.to_string());
    line(&mut text, "state", &event.state);
    line(&mut text, "written", &at(event.created_at));
    if let Some(moment) = story.deliver_after {
        line(&mut text, "not before", &at(moment));
    }
    if let Some(moment) = story.expires_at {
        line(&mut text, "expires", &at(moment));
    }
    line(&mut text, "position", &format!("id {}, shard {}", event.id, story.shard));
    line(&mut text, "payload", &format!("{} bytes", story.payload_bytes));
    if story.deliveries.is_empty() {
        text.push_str("\nNothing was recorded yet: it is on the to-do list.\n");
    }
    for delivery in &story.deliveries {
        text.push('\n');
        text.push_str(&tell_delivery(delivery));
    }
    for report in &story.reports {
        text.push_str(&tell_report(report));
    }
    if let Some(headers) = &story.headers {
        let _ = write!(text, "\nheaders:\n{}\n", printable_lines(headers));
    }
    if let Some(payload) = &story.payload {
        let _ = write!(text, "\npayload:\n{}\n", printable_lines(payload));
    }
    text.trim_end().to_owned()
}

/// One delivery: where it stands, then its failed attempts in order.
pub(crate) fn tell_delivery(delivery: &DeliveryStory) -> String {
    let to = if delivery.destination.is_empty() { "no destination" } else { &delivery.destination };
    let mut text = format!("-> {}: {}\n", printable(to), standing(delivery));
    for attempt in &delivery.history {
        text.push_str(&tell_attempt(attempt));
    }
    text
}

/// What a destination said later of a message.
fn tell_report(report: &ReportStory) -> String {
    let attempt = report.attempt.map_or(String::new(), |attempt| format!("attempt {attempt}  "));
    let error = report.error.as_deref().map_or(String::new(), |error| format!("  {}", printable(error)));
    let (status, name) = (printable(&report.status), printable(&report.external_id));
    format!("   {}  {attempt}reported {status}{error}  ({name})\n", at(report.at))
}

/// Where it stands, in one sentence.
fn standing(delivery: &DeliveryStory) -> String {
    let attempts = match delivery.attempts {
        0 => "not attempted".to_owned(),
        1 => "1 attempt".to_owned(),
        n => format!("{n} attempts"),
    };
    let mut text = match delivery.state.as_str() {
        "delivered" => {
            let when = delivery.sent_at.map_or(String::new(), |moment| format!(" at {}", at(moment)));
            let status = delivery.status.map_or(String::new(), |status| format!(", answered {status}"));
            format!("delivered{when}{status}, {attempts}")
        }
        "retry" if delivery.begun.is_some() => {
            let begun = delivery.begun.unwrap_or_default();
            let decided =
                delivery.next_attempt_at.map_or("soon".into(), |moment| format!("at {}", at(moment)));
            format!(
                "in doubt: attempt {begun} began, and what became of it is not known yet; decided {decided}"
            )
        }
        "retry" => {
            let next = delivery.next_attempt_at.map_or("soon".into(), |moment| format!("at {}", at(moment)));
            format!("failing, {attempts} so far, next one {next}")
        }
        "waiting" => format!("waiting behind an earlier event of its aggregate, {attempts}"),
        "held" => {
            let why =
                delivery.last_error.as_deref().map_or(String::new(), |why| format!(" ({})", printable(why)));
            format!("held for an operator, {attempts}; its lane waits{why}")
        }
        "dead" => format!("dead letter after {attempts}"),
        "discarded" => match discarded_because(delivery) {
            Some(reason) => format!("discarded, as {}, {attempts}", printable(reason)),
            None => format!("discarded by an operator, {attempts}"),
        },
        "expired" => format!("expired before it could be delivered, {attempts}"),
        "unrouted" => "unrouted: no destination wants it".to_owned(),
        other => format!("{other}, {attempts}"),
    };
    if maybe_delivered(delivery) {
        text.push_str("; maybe delivered: an answer was lost");
    }
    if delivery.replays > 0 {
        let _ = write!(
            text,
            ", replayed {} time{}",
            delivery.replays,
            if delivery.replays == 1 { "" } else { "s" }
        );
    }
    if let Some(name) = &delivery.external_id {
        let _ = write!(text, ", known there as {}", printable(name));
    }
    text
}

/// Whether the destination may have the event although it never confirmed it: the outcome of an attempt is unknown.
pub(crate) fn maybe_delivered(delivery: &DeliveryStory) -> bool {
    delivery.sent_at.is_none() && delivery.history.iter().any(|attempt| attempt.class == "unknown")
}

/// A reason that is not that of an attempt.
fn discarded_because(delivery: &DeliveryStory) -> Option<&str> {
    let reason = delivery.last_error.as_deref()?;
    delivery.history.last().is_none_or(|attempt| attempt.reason != reason).then_some(reason)
}

fn tell_attempt(attempt: &AttemptStory) -> String {
    let status = attempt.status.map_or(String::new(), |status| format!(" {status}"));
    let mut text = format!(
        "   {}  attempt {}  {}{status}  {}  ({} ms)\n",
        at(attempt.at),
        attempt.attempt,
        printable(&attempt.class),
        printable(&attempt.reason),
        attempt.took_ms
    );
    if let Some(answer) = attempt.answer.as_deref().filter(|answer| !answer.trim().is_empty()) {
        let _ = writeln!(text, "      answer: {}", printable(answer.trim()));
    }
    text
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name:<11} {}", printable(value));
}

/// Text as it is stored, except that control characters other than line breaks and tabs do not reach the terminal.
fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use postbox_core::operations::EventSummary;
    use uuid::Uuid;

    use super::*;

    fn moment(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_770_000_000 + seconds).unwrap()
    }

    #[test]
    fn a_story_reads_from_writing_to_the_last_attempt() {
        let event_id = Uuid::from_u128(7);
        let story = Story {
            event: EventSummary {
                id: 12,
                event_id,
                aggregate_type: "order".into(),
                aggregate_id: "42".into(),
                aggregate_seq: 3,
                event_type: "order.confirmed".into(),
                created_at: moment(0),
                state: "retry".into(),
            },
            shard: 5,
            deliver_after: None,
            expires_at: None,
            payload_bytes: 8,
            payload: Some("{\"a\": 1}".into()),
            headers: None,
            deliveries: vec![DeliveryStory {
                id: 12,
                event_id,
                event_type: "order.confirmed".into(),
                aggregate_type: "order".into(),
                aggregate_id: "42".into(),
                aggregate_seq: 3,
                destination: "billing".into(),
                state: "retry".into(),
                attempts: 1,
                replays: 1,
                begun: None,
                next_attempt_at: Some(moment(6)),
                sent_at: None,
                status: Some(503),
                external_id: None,
                last_error: Some("answered 503".into()),
                history: vec![AttemptStory {
                    at: moment(1),
                    attempt: 1,
                    class: "transient".into(),
                    status: Some(503),
                    reason: "the receiver is overloaded".into(),
                    answer: Some("try\u{1b}[2Jlater".into()),
                    took_ms: 12,
                }],
            }],
            reports: vec![ReportStory {
                external_id: "wamid.A".into(),
                attempt: Some(1),
                status: "failed".into(),
                at: moment(2),
                error: Some("131026 Message undeliverable".into()),
            }],
        };
        let expected = "\
event       00000000-0000-0000-0000-000000000007
type        order.confirmed
aggregate   order 42
sequence    3
state       retry
written     2026-02-02T02:40:00.000Z
position    id 12, shard 5
payload     8 bytes

-> billing: failing, 1 attempt so far, next one at 2026-02-02T02:40:06.000Z, replayed 1 time
   2026-02-02T02:40:01.000Z  attempt 1  transient 503  the receiver is overloaded  (12 ms)
      answer: try\u{fffd}[2Jlater
   2026-02-02T02:40:02.000Z  attempt 1  reported failed  131026 Message undeliverable  (wamid.A)

payload:
{\"a\": 1}";
        assert_eq!(tell(&story), expected);
    }

    #[test]
    fn a_delivery_whose_answer_was_lost_is_told_as_maybe_delivered_until_it_is_confirmed() {
        let attempt = AttemptStory {
            at: moment(1),
            attempt: 1,
            class: "unknown".into(),
            status: None,
            reason: "no answer within 10 s".into(),
            answer: None,
            took_ms: 10_000,
        };
        let mut delivery = DeliveryStory {
            id: 12,
            event_id: Uuid::from_u128(7),
            event_type: "order.confirmed".into(),
            aggregate_type: "order".into(),
            aggregate_id: "42".into(),
            aggregate_seq: 3,
            destination: "billing".into(),
            state: "dead".into(),
            attempts: 8,
            replays: 0,
            begun: None,
            next_attempt_at: None,
            sent_at: None,
            status: None,
            external_id: None,
            last_error: Some("no answer within 10 s".into()),
            history: vec![attempt],
        };
        assert!(tell_delivery(&delivery).contains("dead letter after 8 attempts; maybe delivered"));
        delivery.state = "delivered".into();
        delivery.sent_at = Some(moment(60));
        assert!(!tell_delivery(&delivery).contains("maybe"));
    }
}
