//! Events: what a producer writes and what the relay reads back.

use jiff::Timestamp;
use serde_json::value::RawValue;
use uuid::Uuid;

/// Number of shards that aggregates are spread over; the unit in which relays share the work.
///
/// Fixed for the life of a database: an aggregate keeps the shard it was given when it was first seen.
pub const SHARD_COUNT: u16 = 64;

/// Largest accepted `aggregate_type`, `aggregate_id` and `event_type`, in bytes of UTF-8.
///
/// Together they are keys of an index, and a PostgreSQL B-tree entry holds at most about 2,700 bytes.
pub const MAX_NAME_BYTES: usize = 512;

/// A shard number, 0 to [`SHARD_COUNT`] − 1.
pub type Shard = u16;

/// Position of an event in its outbox: within an aggregate, id order = sequence order = commit order.
pub type OutboxId = i64;

/// Database-wide number of an aggregate (type + id), given when the aggregate is first seen.
pub type LaneId = i64;

/// An event to be written in the caller's own transaction.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct NewEvent {
    /// Identity of the event; `None` lets the database draw a UUID version 7. A repeated id inserts nothing.
    pub event_id: Option<Uuid>,
    /// Kind of the aggregate, for example `order`.
    pub aggregate_type: String,
    /// Identity of the aggregate within its type.
    pub aggregate_id: String,
    /// Expected sequence; `None` lets the database take the next one. Anything but the next one is an error.
    pub aggregate_seq: Option<i64>,
    /// Kind of the event, for example `order.confirmed`.
    pub event_type: String,
    /// The exact JSON text that is stored, signed and sent.
    pub payload: Box<RawValue>,
    /// A JSON object of text values carried beside the payload (trace context, tenant, …).
    pub headers: Option<Box<RawValue>>,
    /// The event, and its lane behind it, waits until then.
    pub deliver_after: Option<Timestamp>,
    /// An event past this moment is not sent any more and is recorded as expired.
    pub expires_at: Option<Timestamp>,
}

impl NewEvent {
    /// An event of the given aggregate whose payload is `payload` as JSON.
    ///
    /// # Errors
    /// When `payload` cannot be written as JSON (a map with keys that are no text, for example).
    pub fn new<T: serde::Serialize + ?Sized>(
        aggregate_type: impl Into<String>,
        aggregate_id: impl Into<String>,
        event_type: impl Into<String>,
        payload: &T,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self::with_raw_payload(
            aggregate_type,
            aggregate_id,
            event_type,
            serde_json::value::to_raw_value(payload)?,
        ))
    }

    /// An event whose payload is already JSON text; it is stored and sent byte for byte.
    pub fn with_raw_payload(
        aggregate_type: impl Into<String>,
        aggregate_id: impl Into<String>,
        event_type: impl Into<String>,
        payload: Box<RawValue>,
    ) -> Self {
        Self {
            event_id: None,
            aggregate_type: aggregate_type.into(),
            aggregate_id: aggregate_id.into(),
            aggregate_seq: None,
            event_type: event_type.into(),
            payload,
            headers: None,
            deliver_after: None,
            expires_at: None,
        }
    }
}

/// A committed event as a store reads it back.
#[derive(Debug, Clone)]
pub struct Event {
    /// Position in the outbox.
    pub id: OutboxId,
    /// Identity towards receivers; the same in every repetition.
    pub event_id: Uuid,
    /// Number of the aggregate.
    pub lane_id: LaneId,
    /// Shard of the aggregate.
    pub shard: Shard,
    /// Kind of the aggregate.
    pub aggregate_type: String,
    /// Identity of the aggregate within its type.
    pub aggregate_id: String,
    /// Gapless from 1 per aggregate.
    pub aggregate_seq: i64,
    /// Kind of the event.
    pub event_type: String,
    /// The stored JSON text.
    pub payload: Payload,
    /// The stored headers, a JSON object, as text.
    pub headers: Option<String>,
    /// When the producer wrote it, by the database's clock.
    pub created_at: Timestamp,
}

/// The payload of an event that was read: small ones ride along, large ones are fetched before the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// The exact stored text.
    Inline(String),
    /// Not read yet; its size in bytes.
    Deferred(u64),
}

impl Payload {
    /// Size of the text in bytes, whether it was read or not.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Deferred(bytes) => *bytes,
        }
    }

    /// Whether the text is empty (a valid JSON text never is).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
