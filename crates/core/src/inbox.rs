//! The consumer's half: what it remembers, and what an operator does with that.
//!
//! Delivery is at least once, so a consumer that must not act twice on one event writes the event's id in the
//! transaction of its effect. A repeat finds the id and does nothing.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use crate::operations::BatchStep;
use crate::store::StoreResult;

/// Longest name of a consumer in bytes; the shortest has one.
pub const MAX_CONSUMER_BYTES: usize = 100;

/// Whether a consumer meets an event for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "acting on a duplicate is what the inbox is there to prevent"]
pub enum Acceptance {
    /// It does. The event is remembered if the transaction commits; act on it in that same transaction.
    First,
    /// It was accepted before: do nothing, and confirm it to the sender.
    Duplicate,
}

/// An event and its place in its aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The event's identity.
    pub event_id: Uuid,
    /// Kind of the aggregate.
    pub aggregate_type: &'a str,
    /// Identity of the aggregate.
    pub aggregate_id: &'a str,
    /// Sequence in the aggregate, 1 and up.
    pub sequence: i64,
}

/// How an event follows on what its consumer has accepted of the same aggregate. All but a duplicate are remembered;
/// who does not want a gap or a stale event rolls back, and the sender tries again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "acting on a duplicate is what the inbox is there to prevent"]
pub enum Succession {
    /// Its sequence is the last accepted one plus 1, or 1 for the first event of the aggregate.
    Next,
    /// It was accepted before.
    Duplicate,
    /// It is ahead: what lies between was not accepted. It was not routed to this consumer, was given up by the sender,
    /// or precedes the consumer's beginning.
    Gap,
    /// It is behind an event that was accepted earlier: a dead letter that was replayed, or a repeat that is older than
    /// what the inbox remembers.
    Stale,
}

/// One row of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The event.
    pub event_id: Uuid,
    /// Order of acceptance within the inbox.
    pub position: i64,
    /// When the accepting transaction began, by the consumer's database.
    pub received_at: Timestamp,
}

/// What pruning was last told to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long rows stay; for the outbox, those it keeps longest (dead letters).
    pub keep: Duration,
    /// Whatever was written at this moment or later is still there.
    pub complete_since: Timestamp,
}

/// A consumer's inbox as an operator uses it. Its database need not have an outbox.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Creates or upgrades the tables of the inbox and no others; safe when two run at once. Returns the versions that
    /// were applied.
    async fn migrate_inbox(&self) -> StoreResult<Vec<u32>>;

    /// What the inbox's pruning keeps; `None` when it was never pruned.
    async fn inbox_retention(&self) -> StoreResult<Option<Retention>>;

    /// Forgets up to `limit` events that were received longer ago than `older_than`, in order of position above `after`.
    async fn prune_inbox(&self, older_than: Duration, after: i64, limit: u32) -> StoreResult<BatchStep>;

    /// What `consumer` has received, in order of `event_id` above `after`, at most `limit` rows.
    async fn received(&self, consumer: &str, after: Option<Uuid>, limit: u32) -> StoreResult<Vec<Received>>;

    /// About how many events `consumer` has received, for a progress bar.
    async fn estimate_received(&self, consumer: &str) -> StoreResult<u64>;
}
