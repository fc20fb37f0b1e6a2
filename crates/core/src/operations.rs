//! The seam to the database, as an operator uses it: what is late and why, and the way back.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use crate::delivery::DeliveryState;
use crate::endpoint::{Blocked, EndpointRecord};
use crate::event::{OutboxId, Shard};
use crate::reports::ReportStory;
use crate::store::StoreResult;

/// Counting stops here, so that a status costs the same on every table.
pub const COUNT_CAP: u64 = 100_000;

/// A count that stops at [`COUNT_CAP`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CappedCount {
    /// The number, at most [`COUNT_CAP`].
    pub value: u64,
    /// Whether there are more.
    pub capped: bool,
}

impl std::fmt::Display for CappedCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}{}", self.value, if self.capped { "+" } else { "" }))
    }
}

/// The state of the whole outbox at one moment.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Status {
    /// The database's clock.
    pub now: Timestamp,
    /// Age of the oldest event that is committed, not put off by its own `deliver_after`, and neither delivered nor
    /// terminal; 0 when there is none.
    pub lag_seconds: f64,
    /// That event.
    pub oldest_event: Option<Uuid>,
    /// Events on the to-do list.
    pub pending: CappedCount,
    /// Attempts in flight, as the live relays last reported.
    pub in_flight: u64,
    /// Parked deliveries that are not finished (states retry, waiting and held).
    pub struggling: CappedCount,
    /// Dead letters.
    pub dead: CappedCount,
    /// Events that no route matched.
    pub unrouted: CappedCount,
    /// Every destination that has an unfinished or dead delivery, by name.
    pub destinations: Vec<DestinationStatus>,
    /// Live relays.
    pub relays: Vec<RelayStatus>,
}

/// One destination's exceptions.
#[derive(Debug, Clone, serde::Serialize)]
pub struct DestinationStatus {
    /// Its name.
    pub name: String,
    /// Heads that wait for their next attempt.
    pub retry: CappedCount,
    /// Deliveries parked behind a head.
    pub waiting: CappedCount,
    /// Lanes that wait for an operator.
    pub held: CappedCount,
    /// Dead letters.
    pub dead: CappedCount,
    /// Age of the oldest unfinished delivery's event; `None` when all are finished.
    pub oldest_seconds: Option<f64>,
    /// The last recorded failure among the unfinished and dead ones.
    pub last_error: Option<String>,
}

/// One live relay.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RelayStatus {
    /// Its id.
    pub relay: Uuid,
    /// Host name and process id.
    pub label: String,
    /// Shards it owns.
    pub shards: u32,
    /// Highest epoch among them; `None` while it owns none.
    pub epoch: Option<i64>,
    /// Attempts in flight.
    pub in_flight: u32,
    /// When it joined.
    pub started_at: Timestamp,
    /// What is left of its lease; negative when it has run out.
    pub lease_seconds: f64,
    /// Version of the destinations kept as data that it works by; 0 before it has read one.
    pub destinations_version: i64,
    /// Destinations to which it sends nothing at present, and why.
    pub blocked: Blocked,
}

/// One shard, and who works on it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ShardStatus {
    /// The shard.
    pub shard: Shard,
    /// How often it was taken so far; with the shard it names one ownership.
    pub epoch: i64,
    /// Who owns it; `None` while it is free.
    pub owner: Option<ShardOwner>,
}

/// The owner of a shard.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ShardOwner {
    /// The relay.
    pub relay: Uuid,
    /// Its host name and process id.
    pub label: String,
    /// How long it has owned the shard.
    pub held_seconds: f64,
    /// What is left of its lease; negative when it has run out and nobody has evicted it yet.
    pub lease_seconds: f64,
}

/// Which events or deliveries a command is about; conditions are joined by *and*, an empty one always holds.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// These events.
    pub event_ids: Vec<Uuid>,
    /// Deliveries to this destination.
    pub destination: Option<String>,
    /// Glob on the event type, `*` for any run of characters.
    pub event_type: Option<String>,
    /// Aggregates of this type.
    pub aggregate_type: Option<String>,
    /// The aggregate of this id.
    pub aggregate_id: Option<String>,
    /// Created at or after.
    pub created_from: Option<Timestamp>,
    /// Created before.
    pub created_to: Option<Timestamp>,
    /// Confirmed by the destination before; what was sent again meanwhile is left out.
    pub sent_before: Option<Timestamp>,
}

/// A page of a listing: rows with a lower id than `before`, newest first.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// `None` begins at the newest.
    pub before: Option<OutboxId>,
    /// At most this many rows, 1 to 1,000.
    pub limit: u32,
}

/// One event in a listing.
#[derive(Debug, Clone, serde::Serialize)]
pub struct EventSummary {
    /// Position in the outbox.
    pub id: OutboxId,
    /// Its identity.
    pub event_id: Uuid,
    /// Kind of the aggregate.
    pub aggregate_type: String,
    /// Identity of the aggregate.
    pub aggregate_id: String,
    /// Sequence in the aggregate.
    pub aggregate_seq: i64,
    /// Kind of the event.
    pub event_type: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// `pending` while on the to-do list; otherwise the least finished state of its deliveries.
    pub state: String,
}

/// Everything known of one event, without its payload unless asked for.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Story {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Its shard.
    pub shard: u16,
    /// It waits until then.
    pub deliver_after: Option<Timestamp>,
    /// It is not sent after.
    pub expires_at: Option<Timestamp>,
    /// Size of the payload in bytes.
    pub payload_bytes: u64,
    /// The exact payload, when asked for.
    pub payload: Option<String>,
    /// The stored headers, when the payload was asked for.
    pub headers: Option<String>,
    /// Its deliveries, by destination.
    pub deliveries: Vec<DeliveryStory>,
    /// What destinations reported of its messages, in the order of their moments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<ReportStory>,
}

/// Everything known of one delivery.
#[derive(Debug, Clone, serde::Serialize)]
pub struct DeliveryStory {
    /// The event's position.
    pub id: OutboxId,
    /// The event's identity.
    pub event_id: Uuid,
    /// Kind of the event.
    pub event_type: String,
    /// Kind of the aggregate.
    pub aggregate_type: String,
    /// Identity of the aggregate.
    pub aggregate_id: String,
    /// Sequence in the aggregate.
    pub aggregate_seq: i64,
    /// The destination; empty for an unrouted event.
    pub destination: String,
    /// Where it stands.
    pub state: String,
    /// Attempts since it was written or last replayed.
    pub attempts: u32,
    /// How often an operator had it sent again.
    pub replays: u32,
    /// An attempt that was committed before its request and of which nothing more is known.
    pub begun: Option<u32>,
    /// Next attempt, if one is planned.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was confirmed.
    pub sent_at: Option<Timestamp>,
    /// Status code of the last answer.
    pub status: Option<u16>,
    /// The destination's own name for the message.
    pub external_id: Option<String>,
    /// The last failure, one line.
    pub last_error: Option<String>,
    /// Failed attempts, oldest first, at most the last [`HISTORY_LIMIT`].
    pub history: Vec<AttemptStory>,
}

/// Failed attempts kept per delivery.
pub const HISTORY_LIMIT: usize = 20;

/// One failed attempt.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct AttemptStory {
    /// When it ended, by the database's clock.
    pub at: Timestamp,
    /// Its number since the event was written or last replayed.
    pub attempt: u32,
    /// The failure's class.
    pub class: String,
    /// Status code of the answer.
    pub status: Option<u16>,
    /// One line.
    pub reason: String,
    /// Beginning of the answer's body, at most 2 KiB.
    pub answer: Option<String>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// Progress of a command that works in batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchStep {
    /// Rows changed by this batch.
    pub changed: u64,
    /// Where the next batch continues.
    pub cursor: OutboxId,
    /// Whether nothing is left.
    pub done: bool,
}

/// What pruning may remove.
#[derive(Debug, Clone, Copy)]
pub struct PrunePolicy {
    /// Events older than this whose deliveries are all delivered, discarded or expired.
    pub older_than: Duration,
    /// Events older than this that have a dead or unrouted delivery; never younger ones.
    pub dead_older_than: Duration,
}

/// The database as an operator uses it.
///
/// # Contract
/// - Calls that change deliveries keep order against running relays: they lock the shards they touch, so that a
///   concurrent settle waits, and leave every lane with the head that [`crate::store::Store`] promises.
/// - Batches are short transactions, in order of id; a command that is interrupted has done whole batches.
/// - Nothing here needs a lease, and nothing here changes an event, except that `prune` deletes it.
#[async_trait]
pub trait Operations: Send + Sync {
    /// Creates or upgrades the tables; safe when two run at once. Returns the versions that were applied.
    async fn migrate(&self) -> StoreResult<Vec<u32>>;

    /// The state of the whole outbox.
    async fn status(&self) -> StoreResult<Status>;

    /// Every shard in order of its number, and who works on it, in one snapshot.
    async fn shards(&self) -> StoreResult<Vec<ShardStatus>>;

    /// Events that `selection` is about, newest first.
    async fn events(&self, selection: &Selection, page: Page) -> StoreResult<Vec<EventSummary>>;

    /// Everything known of one event; `None` when there is none of that id.
    async fn story(&self, event_id: Uuid, with_payload: bool) -> StoreResult<Option<Story>>;

    /// Deliveries in one of `states`, newest first.
    async fn deliveries(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        page: Page,
    ) -> StoreResult<Vec<DeliveryStory>>;

    /// How many deliveries `selection` and `states` are about. Exact, whatever it costs.
    async fn count_deliveries(&self, selection: &Selection, states: &[DeliveryState]) -> StoreResult<u64>;

    /// Puts up to `limit` deliveries (in one of `states`, ids above `after`) back to be sent: attempts start again at
    /// 0, the failure history stays, `replays` goes up by one. They go out in lane order, before later events of
    /// their lanes that were not sent yet.
    async fn replay(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep>;

    /// Marks up to `limit` deliveries (in one of `states`, ids above `after`) as discarded; their lanes go on.
    async fn discard(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep>;

    /// How many events `policy` would remove. Exact, whatever it costs.
    async fn count_prunable(&self, policy: &PrunePolicy) -> StoreResult<u64>;

    /// Removes up to `limit` events with ids above `after` that `policy` allows to remove, with their deliveries, and
    /// leaves each aggregate's sequence remembered.
    async fn prune(&self, policy: &PrunePolicy, after: OutboxId, limit: u32) -> StoreResult<BatchStep>;

    /// Every endpoint and switch, by name.
    async fn list_endpoints(&self) -> StoreResult<Vec<EndpointRecord>>;

    /// The endpoint or switch of this name.
    async fn find_endpoint(&self, name: &str) -> StoreResult<Option<EndpointRecord>>;

    /// Adds an endpoint, enabled, with its first secret; `settings` is a JSON object. `false` when there is a row of that
    /// name, which stays as it is.
    async fn add_endpoint(&self, name: &str, settings: &str, secret: Option<&str>) -> StoreResult<bool>;

    /// Replaces the settings that were read as `seen`. `false` when the row is gone or they have changed meanwhile.
    async fn change_endpoint(&self, name: &str, seen: &str, settings: &str) -> StoreResult<bool>;

    /// Switches a destination off for `reason`, adding a row when there is none, or on again with `None`; a row that
    /// was only a switch goes then. `false` when it was so already.
    async fn switch_endpoint(&self, name: &str, reason: Option<&str>) -> StoreResult<bool>;

    /// Adds a secret; those that the endpoint has so far expire after `keep`, unless earlier. Removes what has expired.
    /// `false` when there is no row of that name.
    ///
    /// # Errors
    /// `Input` when it would have more than [`crate::endpoint::MAX_SECRETS`] that are in use.
    async fn add_secret(&self, name: &str, secret: &str, keep: Duration) -> StoreResult<bool>;

    /// Removes the row of this name with its secrets. The version since which it is gone; `None` when there was none.
    async fn remove_endpoint(&self, name: &str) -> StoreResult<Option<i64>>;

    /// Marks up to `limit` unfinished or dead deliveries to `destination` as discarded, with `reason` as their last error.
    /// Returns how many there were: fewer than `limit` means that none is left.
    async fn discard_removed(&self, destination: &str, reason: &str, limit: u32) -> StoreResult<u64>;
}
