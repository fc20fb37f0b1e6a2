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
