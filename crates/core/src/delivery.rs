//! Deliveries: one event to one destination.

use std::sync::Arc;
use std::time::Duration;

use crate::event::{Event, LaneId, OutboxId, Shard};

/// Where a delivery stands, as stored in `outbox_delivery.state`.
///
/// Per lane, the unfinished delivery with the lowest id is the head (`Retry` or `Held`); all unfinished ones
/// behind it are `Waiting`. Stores restore this at the end of every settle and every operator's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Confirmed by the destination; the row is its receipt.
    Delivered,
    /// Head of its lane: due at `next_attempt_at`.
    Retry,
    /// Parked behind the head of its lane.
    Waiting,
    /// Head of its lane that waits for an operator (attempts ran out with `hold_lane`, or the destination is gone).
    Held,
    /// Given up; the lane went on. Can be replayed or discarded.
    Dead,
    /// An operator decided that it shall not be sent.
    Discarded,
    /// Its deadline passed before it could be delivered.
    Expired,
    /// No route matched the event.
    Unrouted,
}

impl DeliveryState {
    /// All states, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Delivered,
        Self::Retry,
        Self::Waiting,
        Self::Held,
        Self::Dead,
        Self::Discarded,
        Self::Expired,
        Self::Unrouted,
    ];

    /// The word stored in the database and shown everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry => "retry",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Dead => "dead",
            Self::Discarded => "discarded",
            Self::Expired => "expired",
            Self::Unrouted => "unrouted",
        }
    }

    /// The state named by `word`, if there is one.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether the lane waits for this delivery.
    #[must_use]
    pub fn is_unfinished(self) -> bool {
        matches!(self, Self::Retry | Self::Waiting | Self::Held)
    }
}

/// Name of a destination, shared cheaply.
pub type DestinationName = Arc<str>;

/// Destination name under which an event without any route is recorded.
pub const NO_DESTINATION: &str = "";

/// What a settle writes for one delivery: a receipt, or an exception that was parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Position of the event.
    pub id: OutboxId,
    /// Number of the event's aggregate.
    pub lane_id: LaneId,
    /// Shard of the event's aggregate.
    pub shard: Shard,
    /// The destination; [`NO_DESTINATION`] for an unrouted event.
    pub destination: DestinationName,
    /// State to store.
    pub state: DeliveryState,
    /// Requests really started since the event was written or last replayed.
    pub attempts: u32,
    /// Those of them that do not count against the attempts allowed ([`crate::retry::Tries`]).
    pub uncounted: u32,
    /// The attempt that was begun last ([`crate::store::Store::begin`]) was not made after all.
    pub withdrawn: bool,
    /// For `Retry`: how long from now (database clock) until the next attempt.
    pub retry_in: Option<Duration>,
    /// Status code of the last answer.
    pub status: Option<u16>,
    /// The destination's own name for the message.
    pub external_id: Option<String>,
    /// What happened in the attempt this record reports, if it failed; appended to the delivery's history.
    pub failure: Option<AttemptFailure>,
}

/// A failed attempt as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFailure {
    /// The word of its [`crate::outcome::FailureClass`].
    pub class: &'static str,
    /// One line for the operator.
    pub reason: String,
    /// Beginning of the answer's body.
    pub answer: Option<String>,
    /// How long the attempt took.
    pub took: Duration,
}

/// A delivery that was parked earlier, read back with its event.
#[derive(Debug, Clone)]
pub struct ParkedDelivery {
    /// The event.
    pub event: Arc<Event>,
    /// Requests started so far, one that was begun and never recorded included.
    pub attempts: u32,
    /// Those of them that do not count against the attempts allowed.
    pub uncounted: u32,
    /// `Retry`, `Waiting` or `Held`.
    pub state: DeliveryState,
    /// For `Retry`: how long until it is due, by the database clock; zero when it is due.
    pub due_in: Duration,
    /// How long until the event expires, by the database clock; `None` when it never does, zero when it has.
    pub expires_in: Option<Duration>,
    /// An operator asked for this delivery to be made again.
    pub replay: bool,
    /// The last failed attempt's class was "unknown", or it was begun and nothing more is known: the receiver may already
    /// have the event.
    pub maybe_delivered: bool,
}

/// The front of one lane that has a delivery due: its unfinished deliveries in order, the first few.
#[derive(Debug, Clone)]
pub struct ParkedLane {
    /// The destination.
    pub destination: DestinationName,
    /// The aggregate.
    pub lane_id: LaneId,
    /// In order of id, not empty, at most as many as asked for.
    pub deliveries: Vec<ParkedDelivery>,
}
