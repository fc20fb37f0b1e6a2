//! Confirmed deliveries.

use std::sync::Arc;

use postbox_core::outcome::Outcome;

use super::harness::{PeerFault, SinkHarness, attempt};

/// What the peer confirmed is delivered, under the event's id, once.
pub async fn what_the_peer_confirmed_is_delivered_once(harness: &dyn SinkHarness) {
    let order = harness.event("1", 1, "{}");
    let outcome = harness.sink().deliver(&attempt(Arc::clone(&order))).await;
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    assert_eq!(harness.received(), [order.event_id]);
}

/// A payload arrives byte for byte, whatever JSON it is.
pub async fn a_payload_arrives_byte_for_byte(harness: &dyn SinkHarness) {
    let payloads = [
        r#"{ "a" : 1.50, "a": 1e2,"nul":"\u0000","half":"\ud800","face":"😀" }"#.to_owned(),
        "null".to_owned(),
        "[1,\n\t2]".to_owned(),
        "\"\\\"\"".to_owned(),
        format!("\"{}\"", "ü".repeat(100_000)),
    ];
    for payload in &payloads {
        let outcome = harness.sink().deliver(&attempt(harness.event("1", 1, payload))).await;
        assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    }
    let payloads = payloads.map(|payload| harness.payload(&payload));
    assert!(harness.payloads() == payloads, "a payload arrived changed");
}

/// Calls run at the same time, and none gets the outcome of another.
pub async fn calls_run_at_the_same_time(harness: &dyn SinkHarness) {
    let events: Vec<_> = (0..50).map(|n| harness.event(&format!("{n}"), 1, "{}")).collect();
    let sink = harness.sink();
    let attempts: Vec<_> = events.iter().map(|event| attempt(Arc::clone(event))).collect();
    let outcomes = futures_util::future::join_all(attempts.iter().map(|attempt| sink.deliver(attempt))).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Delivered(_))), "{outcomes:?}");
    let mut received = harness.received();
    received.sort();
    let mut sent: Vec<_> = events.iter().map(|event| event.event_id).collect();
    sent.sort();
    assert_eq!(received, sent);
}

/// Names from a producer with every kind of character arrive or are refused with a reason; nothing panics.
pub async fn strange_names_do_no_harm(harness: &dyn SinkHarness) {
    let names = ["", " ", "a b", "ü😀", "a\r\nx-injected: 1", "a\u{0}b", "\u{202e}", &"x".repeat(512)];
    for name in names {
        let mut order = Arc::unwrap_or_clone(harness.event(name, 1, "{}"));
        name.clone_into(&mut order.aggregate_type);
        name.clone_into(&mut order.event_type);
        for headers in
            [None, Some("[]"), Some("not json"), Some(r#"{"traceparent":"a\r\nx-injected: 1","":""}"#)]
        {
            order.headers = headers.map(str::to_owned);
            let outcome = harness.sink().deliver(&attempt(Arc::new(order.clone()))).await;
            assert!(!matches!(outcome, Outcome::NotStarted(_)), "{name:?}: {outcome:?}");
        }
    }
}

/// After every kind of fault the same sink delivers again as soon as the peer does.
pub async fn a_sink_recovers_with_its_peer(harness: &dyn SinkHarness) {
    for fault in [
        PeerFault::Overloaded,
        PeerFault::Refuses,
        PeerFault::AnswerLost,
        PeerFault::Garbage,
        PeerFault::Endless,
        PeerFault::Unreachable,
    ] {
        harness.misbehave(fault).await;
        let outcome = harness.sink().deliver(&attempt(harness.event("1", 1, "{}"))).await;
        assert_eq!(matches!(outcome, Outcome::Failed(_)), fault.class().is_some(), "{fault:?}: {outcome:?}");
        harness.misbehave(PeerFault::None).await;
        let outcome = deliver_until_connected(harness).await;
        assert!(matches!(outcome, Outcome::Delivered(_)), "after {fault:?}: {outcome:?}");
    }
}

/// A connection that its peer closed while idle may cost one attempt, not more.
async fn deliver_until_connected(harness: &dyn SinkHarness) -> Outcome {
    let sink = harness.sink();
    match sink.deliver(&attempt(harness.event("1", 2, "{}"))).await {
        Outcome::Failed(_) => sink.deliver(&attempt(harness.event("1", 2, "{}"))).await,
        outcome => outcome,
    }
}
