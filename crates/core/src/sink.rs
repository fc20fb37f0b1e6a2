//! The seam to a destination.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::event::Event;
use crate::outcome::Outcome;

/// One attempt to be made.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The event. Its payload is always [`crate::event::Payload::Inline`] here.
    pub event: Arc<Event>,
    /// Number of this attempt, from 1.
    pub number: u32,
    /// An operator asked for this delivery to be made again.
    pub replay: bool,
    /// An earlier attempt ended unknown: the destination may already have the event.
    pub maybe_delivered: bool,
    /// Longest time the whole attempt may take.
    pub timeout: Duration,
}

/// A destination that can be sent to.
///
/// # Contract
/// - **Confirmed means durable.** [`Outcome::Delivered`] only after the destination said so in the strongest form
///   its protocol has. Doubt is [`crate::outcome::FailureClass::Unknown`], never delivered and never transient.
/// - **One call, at most one request.** No retries, no redirects, no replay on another connection once the first
///   byte of the request may have been written; retrying is the engine's business.
/// - **Bounded.** Returns within `attempt.timeout`, whatever the peer does, and holds a bounded amount of what it
///   answers.
/// - **Independent calls.** Calls run concurrently, up to the destination's concurrency. Calls for one lane never
///   overlap.
/// - **Cancellation.** The future may be dropped at any point; the connection it used must then not be reused.
/// - **Never panics** on anything a peer does, and puts no payload and no secret into an outcome.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Makes the attempt and tells how it ended.
    async fn deliver(&self, attempt: &Attempt) -> Outcome;
}
