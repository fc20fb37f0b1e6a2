//! One attempt: payload, sink, outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postbox_core::engine::{AttemptId, Start};
use postbox_core::event::{Event, Payload};
use postbox_core::lease::RelayId;
use postbox_core::outcome::{Failure, FailureClass, Outcome};
use postbox_core::sink::Sink;
use postbox_core::store::Store;
use tokio::sync::mpsc::UnboundedSender;

use crate::clerks::Happening;

/// What a sink may take beyond the attempt's own timeout before it counts as stuck.
const GRACE: Duration = Duration::from_millis(500);

/// Tells the relay how the attempt ended, whatever happens to the task: a panic in a sink must not block a lane.
struct Report {
    id: AttemptId,
    began: Instant,
    to: UnboundedSender<Happening>,
    outcome: Option<Outcome>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            Outcome::Failed(Failure::new(
                FailureClass::Unknown,
                "the attempt was broken off inside the relay",
            ))
        });
        // The relay is gone when nobody receives: then nothing is left to be told.
        let _ = self.to.send(Happening::Ended(self.id, outcome, self.began.elapsed()));
    }
}

/// Makes the attempt that was decided on at that moment, and reports it.
pub(crate) async fn make(
    start: Start,
    decided: Instant,
    destination: Arc<str>,
    relay: RelayId,
    sink: Arc<dyn Sink>,
    store: Arc<dyn Store>,
    to: UnboundedSender<Happening>,
) {
    let mut report = Report { id: start.id, began: decided, to, outcome: None };
    let event_id = start.attempt.event.event_id;
    let number = start.attempt.number;
    let outcome = outcome_of(start, relay, &*sink, &*store, report.began).await;
    match &outcome {
        Outcome::Delivered(_) => tracing::debug!(%destination, %event_id, number, "delivered"),
        Outcome::Failed(failure) => tracing::warn!(
            %destination, %event_id, number, class = failure.class.as_str(), reason = %failure.reason, "attempt failed"
        ),
        Outcome::NotStarted(reason) => {
            tracing::warn!(%destination, %event_id, %reason, "attempt not started")
        }
    }
    report.outcome = Some(outcome);
}

async fn outcome_of(
    start: Start,
    relay: RelayId,
    sink: &dyn Sink,
    store: &dyn Store,
    began: Instant,
) -> Outcome {
    let mut attempt = start.attempt;
    let deadline = attempt.timeout;
    // The lease holds until the time that the attempt may take has passed since it was decided on, and no longer: a process
    // that was paused in between must not begin.
    attempt.timeout = deadline.saturating_sub(began.elapsed());
    if attempt.timeout.is_zero() {
        return Outcome::NotStarted("the relay was held up for longer than an attempt may take".into());
    }
    if let Payload::Deferred(_) = attempt.event.payload {
        let text = match store.payload(attempt.event.id).await {
            Ok(Some(text)) => text,
            Ok(None) => {
                let gone = "the event was deleted from the outbox before it could be sent";
                return Outcome::Failed(Failure::new(FailureClass::Permanent, gone));
            }
            Err(error) => return Outcome::NotStarted(format!("cannot read the payload: {error}")),
        };
        attempt.timeout = deadline.saturating_sub(began.elapsed());
        if attempt.timeout.is_zero() {
            return Outcome::NotStarted("reading the payload took longer than an attempt may".into());
        }
        attempt.event = Arc::new(Event { payload: Payload::Inline(text), ..(*attempt.event).clone() });
    }
    if let Some(beginning) = &start.beginning {
        match store.begin(beginning, relay).await {
            Ok(true) => {}
            Ok(false) => {
                return Outcome::NotStarted("it was settled by others, or belongs to another relay".into());
            }
            Err(error) => return Outcome::NotStarted(format!("cannot record that it begins: {error}")),
        }
        attempt.timeout = deadline.saturating_sub(began.elapsed());
        if attempt.timeout.is_zero() {
            return Outcome::NotStarted("recording that it begins took longer than an attempt may".into());
        }
    }
    let limit = attempt.timeout + GRACE;
    match tokio::time::timeout(limit, sink.deliver(&attempt)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let reason = format!("no answer within {deadline:?}");
            Outcome::Failed(Failure::new(FailureClass::Unknown, reason))
        }
    }
}
