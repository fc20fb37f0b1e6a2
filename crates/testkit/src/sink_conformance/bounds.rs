//! Time and memory are bounded, whatever the peer does; calls may be dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postbox_core::outcome::Outcome;
use postbox_core::sink::Attempt;

use super::harness::{PeerFault, SinkHarness, attempt};

/// An attempt ends within its time when the peer says nothing.
pub async fn an_attempt_ends_within_its_time(harness: &dyn SinkHarness) {
    harness.misbehave(PeerFault::Silent).await;
    let started = Instant::now();
    let short = Attempt { timeout: Duration::from_millis(300), ..attempt(harness.event("1", 1, "{}")) };
    let outcome = harness.sink().deliver(&short).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(3), "{took:?}");
}

/// An answer without end is read up to a bound and then left.
pub async fn an_endless_answer_is_left(harness: &dyn SinkHarness) {
    harness.misbehave(PeerFault::Endless).await;
    let started = Instant::now();
    let outcome = harness.sink().deliver(&attempt(harness.event("1", 1, "{}"))).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{outcome:?}");
    assert_eq!(harness.received().len(), 1);
}

/// A call that is dropped half-way leaves a sink that works, and its connection is not used again.
pub async fn a_dropped_call_leaves_a_working_sink(harness: &dyn SinkHarness) {
    let sink = harness.sink();
    assert!(matches!(sink.deliver(&attempt(harness.event("1", 1, "{}"))).await, Outcome::Delivered(_)));
    harness.misbehave(PeerFault::Silent).await;
    let stuck = attempt(harness.event("1", 2, "{}"));
    let mut call = sink.deliver(&stuck);
    // Until the peer has read the message; the call itself cannot end.
    tokio::select! {
        outcome = &mut call => panic!("the peer is silent, and yet: {outcome:?}"),
        () = harness.wait_for(2) => {}
    }
    drop(call);
    harness.misbehave(PeerFault::None).await;
    let third = harness.event("1", 3, "{}");
    let outcome = sink.deliver(&attempt(Arc::clone(&third))).await;
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    assert_eq!(harness.received().last(), Some(&third.event_id));
    assert_eq!(harness.received().len(), 3);
}
