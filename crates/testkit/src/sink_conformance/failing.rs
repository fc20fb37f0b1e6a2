//! Failures: the class tells what is known, and doubt is never taken for a failure or a success.

use std::sync::Arc;
use std::time::Duration;

use postbox_core::outcome::{Failure, Outcome};
use postbox_core::sink::Attempt;

use super::harness::{PeerFault, SinkHarness, attempt};

async fn fail(harness: &dyn SinkHarness, fault: PeerFault) -> Failure {
    harness.misbehave(fault).await;
    let quick = Attempt { timeout: Duration::from_millis(500), ..attempt(harness.event("1", 1, "{}")) };
    match harness.sink().deliver(&quick).await {
        Outcome::Failed(failure) => {
            assert_eq!(Some(failure.class), fault.class(), "{fault:?}: {failure:?}");
            failure
        }
        other => panic!("{fault:?} gave {other:?}"),
    }
}

/// A peer that cannot be reached, or is overloaded, is a transient failure.
pub async fn what_will_pass_is_transient(harness: &dyn SinkHarness) {
    fail(harness, PeerFault::Overloaded).await;
    fail(harness, PeerFault::Unreachable).await;
}

/// A message that the peer understood and refused is rejected.
pub async fn what_the_peer_refuses_is_rejected(harness: &dyn SinkHarness) {
    fail(harness, PeerFault::Refuses).await;
}

/// A lost answer is unknown: the peer has the event.
pub async fn a_lost_answer_is_unknown(harness: &dyn SinkHarness) {
    fail(harness, PeerFault::AnswerLost).await;
    assert_eq!(harness.received().len(), 1, "one call makes at most one request");
}

/// A peer that says nothing is unknown.
pub async fn silence_is_unknown(harness: &dyn SinkHarness) {
    fail(harness, PeerFault::Silent).await;
    assert_eq!(harness.received().len(), 1, "one call makes at most one request");
}

/// An answer that is no answer is unknown.
pub async fn an_answer_that_is_none_is_unknown(harness: &dyn SinkHarness) {
    fail(harness, PeerFault::Garbage).await;
    assert_eq!(harness.received().len(), 1, "one call makes at most one request");
}

/// On a connection that delivered before, an answer that is lost is unknown too, and nothing is sent twice.
pub async fn a_lost_answer_on_a_used_connection_is_unknown(harness: &dyn SinkHarness) {
    let sink = harness.sink();
    assert!(matches!(sink.deliver(&attempt(harness.event("1", 1, "{}"))).await, Outcome::Delivered(_)));
    fail(harness, PeerFault::AnswerLost).await;
    assert_eq!(harness.received().len(), 2);
}

/// Reasons are one bounded line that repeats neither payload nor secret.
pub async fn reasons_give_nothing_away(harness: &dyn SinkHarness) {
    for fault in [
        PeerFault::Overloaded,
        PeerFault::Refuses,
        PeerFault::AnswerLost,
        PeerFault::Silent,
        PeerFault::Garbage,
        PeerFault::Unreachable,
    ] {
        harness.misbehave(fault).await;
        let order = harness.event("1", 1, r#"{"card":"4111-1111"}"#);
        let quick = Attempt { timeout: Duration::from_millis(500), ..attempt(Arc::clone(&order)) };
        let Outcome::Failed(failure) = harness.sink().deliver(&quick).await else {
            panic!("{fault:?} delivered")
        };
        let reason = &failure.reason;
        assert!(!reason.is_empty() && reason.len() <= 500, "{fault:?}: {reason}");
        assert!(!reason.chars().any(char::is_control), "{fault:?}: {reason:?}");
        let shown = format!("{failure:?}");
        assert!(!shown.contains("4111"), "{shown}");
        assert!(harness.secret().is_none_or(|secret| !shown.contains(&secret)), "{fault:?} shows the secret");
    }
}
