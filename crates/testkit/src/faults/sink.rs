//! A sink whose answers get lost.

use std::sync::Arc;

use async_trait::async_trait;
use postbox_core::outcome::{Failure, FailureClass, Outcome};
use postbox_core::sink::{Attempt, Sink};

use super::plan::{Fault, FaultPlan};

/// Passes attempts on to another sink and fails as its plan says: a refused attempt is transient, a lost answer after a
/// real delivery is unknown.
#[derive(Debug)]
pub struct FaultySink<S> {
    inner: S,
    plan: Arc<FaultPlan>,
}

impl<S: Sink> FaultySink<S> {
    /// Wraps `inner`; `plan` is kept by the caller too, to ask it afterwards what happened.
    pub fn new(inner: S, plan: Arc<FaultPlan>) -> Self {
        Self { inner, plan }
    }
}

#[async_trait]
impl<S: Sink> Sink for FaultySink<S> {
    async fn deliver(&self, attempt: &Attempt) -> Outcome {
        match self.plan.draw() {
            Fault::None => self.inner.deliver(attempt).await,
            Fault::Refused => {
                Outcome::Failed(Failure::new(FailureClass::Transient, "fault injected: nothing was sent"))
            }
            Fault::AnswerLost => match self.inner.deliver(attempt).await {
                Outcome::Delivered(_) => Outcome::Failed(Failure::new(
                    FailureClass::Unknown,
                    "fault injected: the answer was lost",
                )),
                other => other,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use postbox_core::outcome::Confirmation;

    use super::*;
    use crate::sink_conformance::{attempt, event};

    #[derive(Default)]
    struct Counting(AtomicUsize);

    #[async_trait]
    impl Sink for Counting {
        async fn deliver(&self, _: &Attempt) -> Outcome {
            self.0.fetch_add(1, Ordering::Relaxed);
            Outcome::Delivered(Confirmation::default())
        }
    }

    #[tokio::test]
    async fn a_refused_attempt_reaches_nobody_and_a_lost_answer_hides_a_delivery() {
        let plan = Arc::new(FaultPlan::scripted([Fault::Refused, Fault::AnswerLost]));
        let sink = FaultySink::new(Counting::default(), plan);
        let order = attempt(event("1", 1, "{}"));
        let mut classes = Vec::new();
        for _ in 0..3 {
            classes.push(match sink.deliver(&order).await {
                Outcome::Failed(failure) => Some((failure.class, sink.inner.0.load(Ordering::Relaxed))),
                _ => None,
            });
        }
        assert_eq!(classes, [Some((FailureClass::Transient, 0)), Some((FailureClass::Unknown, 1)), None]);
    }
}
