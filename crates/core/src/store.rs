//! The seam to the database, as the relay uses it. The operator's half is [`crate::operations::Operations`].
//!
//! # The to-do list and what the relay may conclude from it
//! `outbox_pending` holds one row per event of which nothing is known yet. An event leaves it in exactly one settle,
//! which in the same transaction writes a row to `outbox_delivery` for *every* destination the event is routed to:
//! receipts for what was delivered, parked rows for the rest. So an event is either on the to-do list (and after a
//! crash is sent again as a whole) or its deliveries are complete in `outbox_delivery`, never half of each.
//!
//! Within a lane everything parked has lower ids than everything on the to-do list (except what an operator replays).
//!
//! # Floor and cursor
//! Ids are drawn before their transaction commits, so a row may become visible after a higher one. A scan therefore
//! starts above the shard's *floor*, below which every id is decided (committed or rolled back) and was seen in a scan
//! that started after that. The *cursor* is the highest id scanned so far: rows between floor and cursor are reported
//! by their ids alone, and the caller loads those it does not know. A scan sees one snapshot, and within an aggregate
//! id order is commit order, so whenever a scan returns a row, all earlier pending rows of its aggregate are known too.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::delivery::{DeliveryRecord, DestinationName, ParkedLane};
use crate::endpoint::EndpointSet;
use crate::event::{Event, LaneId, OutboxId, Shard};
use crate::lease::{Heartbeat, LeaseAnswer, RelayId, Term};

/// Payloads up to this many bytes are read together with their event.
pub const INLINE_PAYLOAD_BYTES: u32 = 8 * 1024;

/// Where to scan one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardScan {
    /// The shard.
    pub shard: Shard,
    /// Scan only ids above this; 0 at the beginning of a term.
    pub floor: OutboxId,
    /// Highest id scanned before; rows up to here come back by id alone.
    pub cursor: OutboxId,
}

/// A scan of the to-do list.
#[derive(Debug, Clone)]
pub struct ScanRequest {
    /// The shards to scan.
    pub shards: Vec<ShardScan>,
    /// Rows beyond the cursor to return per shard, at most. At least 1.
    pub rows_per_shard: u32,
    /// Of those, rows per aggregate that come with their event; further ones come by id alone.
    pub rows_per_lane: u32,
    /// Aggregates whose rows are left out up to the cursor and come by id alone beyond it: enough of them is known.
    pub saturated: Vec<LaneId>,
}

/// One row of the to-do list.
#[derive(Debug, Clone)]
pub struct ScanRow {
    /// Shard of the event's aggregate.
    pub shard: Shard,
    /// Position of the event.
    pub id: OutboxId,
    /// The event's aggregate.
    pub lane_id: LaneId,
    /// The event; `None` for rows that the request wanted by id alone.
    pub arrival: Option<Arrival>,
}

/// How far a scan came in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardScanned {
    /// The shard.
    pub shard: Shard,
    /// Highest id beyond the cursor that was looked at; the request's cursor when there was none.
    pub cursor: OutboxId,
    /// The floor for the next scan: never lower than the request's.
    pub floor: OutboxId,
    /// Whether `rows_per_shard` cut the scan short: there may be more.
    pub more: bool,
}

/// What a scan found.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Rows in order of id within each shard.
    pub rows: Vec<ScanRow>,
    /// One entry per shard of the request.
    pub shards: Vec<ShardScanned>,
}

/// An event read from the to-do list.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The event; its payload is deferred when larger than [`INLINE_PAYLOAD_BYTES`].
    pub event: Arc<Event>,
    /// Destinations on which this event's lane has a parked head.
    pub blocked: Vec<DestinationName>,
    /// How long until it may be sent, by the database clock; zero when it may be now.
    pub due_in: Duration,
    /// How long until it expires; `None` when it never does, zero when it has.
    pub expires_in: Option<Duration>,
}

/// The rest of a busy aggregate, straight from its own index.
#[derive(Debug, Clone)]
pub struct RefillRequest {
    /// The aggregate.
    pub lane_id: LaneId,
    /// Its shard.
    pub shard: Shard,
    /// Its type.
    pub aggregate_type: String,
    /// Its id.
    pub aggregate_id: String,
    /// Only events with a higher sequence.
    pub after_seq: i64,
    /// At most this many.
    pub limit: u32,
}

/// Which parked lanes to bring back.
#[derive(Debug, Clone)]
pub struct DueRequest {
    /// Shards this relay owns.
    pub shards: Vec<Shard>,
    /// Per destination how many lanes at most. Destinations not named here are left alone.
    pub destinations: Vec<(DestinationName, u32)>,
    /// Deliveries per lane at most, from its front.
    pub rows_per_lane: u32,
}

/// Outcomes to record, in one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettleBatch {
    /// The terms under which the records were made; exactly those of the shards that occur below.
    pub terms: Vec<Term>,
    /// Events that leave the to-do list.
    pub dispatched: Vec<(Shard, OutboxId)>,
    /// Deliveries to insert or update, at most one per (event, destination).
    pub records: Vec<DeliveryRecord>,
}

impl SettleBatch {
    /// Whether there is nothing to record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dispatched.is_empty() && self.records.is_empty()
    }
}

/// An attempt about to be made, to be committed before its request is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// Position of the event.
    pub id: OutboxId,
    /// The destination.
    pub destination: DestinationName,
    /// The term under which the attempt was decided on, of the delivery's shard.
    pub term: Term,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// How long until somebody decides what its outcome was, if nobody has said so by then.
    pub decide_in: Duration,
}

/// What became of a settle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettleReport {
    /// Terms that are not current any more; nothing of their shards was recorded, everything else was.
    pub refused: Vec<Term>,
}

/// Why the database could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What can be done about it.
    pub kind: StoreErrorKind,
    /// What happened, to what, what to do; no payload, no password.
    pub message: String,
    /// The driver's error.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Kinds of [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The database cannot be reached or dropped the connection: try again later. What was asked may have been done.
    Unavailable,
    /// A conflict with another transaction: nothing was done, try again now.
    Conflict,
    /// The tables are missing or older than this program: run `postbox migrate`.
    SchemaMissing,
    /// A newer version migrated this database: use that version.
    SchemaNewer,
    /// The database role may not do this.
    Denied,
    /// The caller's input is wrong (an unknown event, a URL that cannot be used).
    Input,
    /// Anything else: a defect, or data changed behind our back.
    Internal,
}

impl StoreError {
    /// An error without a driver's error behind it.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An error caused by the driver's error `source`.
    pub fn caused(
        kind: StoreErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }
}

/// Result of a store call.
pub type StoreResult<T> = Result<T, StoreError>;

/// The database as the relay uses it.
///
/// # Contract
/// - **Three lanes of calls.** The relay runs at most one *read* (`scan`, `load`, `refill`, `due`, in any mixture), at
///   most one `settle`, any number of `payload` and `begin`, and one *lease* call (`heartbeat`, `hand_back`, `leave`, `endpoints`,
///   `disable_endpoint`) at a time. Reads, settles and lease calls use connections of their own, so that none waits
///   for another.
/// - **Run to the end.** Futures are never dropped half-way by the relay. Each call bounds its own time (30 s at
///   most) and then fails as `Unavailable`, abandoning its connection.
/// - **Comes back.** After `Unavailable` the next call connects anew. No call panics or blocks for ever.
/// - **Settle is atomic and may be repeated.** After `Unavailable` the caller repeats the same batch until it is
///   answered; a batch that was applied before changes nothing and adds nothing to a history. All records and removals
///   of a current term become durable together; those of a term that is not current leave no trace.
/// - **Heads.** At the end of a settle each lane that it touched has its unfinished delivery with the lowest id as its
///   head: `waiting` there becomes `retry`, due at once, or when it was due before an operator put an earlier one back
///   ahead of it. (So a parked record may be given as `Waiting` without knowing
///   whether something is still ahead of it.) A record never turns a terminal row other than its own lane's replayed
///   one back into an unfinished one.
/// - **Begun is remembered.** After [`Store::begin`] answered `true` the parked delivery counts as maybe delivered, with the
///   number of that attempt, and is not due before `decide_in` has passed; until a record with at least so many attempts
///   is settled, or one says that the attempt was withdrawn. A record that knows of fewer attempts changes nothing.
/// - **Only the database's clock** decides what is due, expired or evicted.
#[async_trait]
pub trait Store: Send + Sync {
    /// Fails with a helpful error unless the tables exist in the version this program needs.
    async fn check_schema(&self) -> StoreResult<()>;

    /// Reads the to-do list; see the module's documentation for floor and cursor.
    async fn scan(&self, request: &ScanRequest) -> StoreResult<Scan>;

    /// Reads events of the to-do list by id, in order of id; those no longer on it are left out.
    async fn load(&self, ids: &[(Shard, OutboxId)]) -> StoreResult<Vec<Arrival>>;

    /// Reads the next events of one aggregate that are on the to-do list, in order.
    async fn refill(&self, request: &RefillRequest) -> StoreResult<Vec<Arrival>>;

    /// Reads lanes that have a head due, the longest due first per destination. A head is due when its state is
    /// `Retry` and its time has come.
    async fn due(&self, request: &DueRequest) -> StoreResult<Vec<ParkedLane>>;

    /// Reads one event's payload; `None` when the event does not exist (any more).
    async fn payload(&self, id: OutboxId) -> StoreResult<Option<String>>;

    /// Commits that an attempt of a parked delivery begins. Answers `false`, and changes nothing, when the term is not
    /// current any more, or the delivery is not the head of its lane any more (evidence has settled it, an operator has), or
    /// a later attempt was begun: then the request must not be written. May be repeated after `Unavailable`.
    async fn begin(&self, beginning: &Beginning, relay: RelayId) -> StoreResult<bool>;

    /// Records outcomes.
    async fn settle(&self, batch: &SettleBatch, relay: RelayId) -> StoreResult<SettleReport>;

    /// Joins or renews: moves the relay's deadline forward, evicts relays whose deadline has passed, and takes free
    /// shards up to the fair share. A first heartbeat under an id joins; a later one under the same id that finds its
    /// row gone is answered [`LeaseAnswer::Evicted`]; `joined` tells the two apart.
    async fn heartbeat(&self, heartbeat: &Heartbeat, joined: bool) -> StoreResult<LeaseAnswer>;

    /// Gives terms back: the shards are free at once. Terms that are not ours any more are ignored.
    async fn hand_back(&self, relay: RelayId, terms: &[Term]) -> StoreResult<()>;

    /// Gives everything back and removes the relay's row.
    async fn leave(&self, relay: RelayId) -> StoreResult<()>;

    /// Everything kept in `outbox_destination`, in one snapshot, unless its version is still `known` (then `None`, for
    /// the price of one row). A version below 0 is never current.
    async fn endpoints(&self, known: i64) -> StoreResult<Option<EndpointSet>>;

    /// Switches the destination off, for a destination that answered that it is gone: the row of an endpoint, or a new
    /// row that switches a destination of the configuration file. One that is off already stays as it is.
    async fn disable_endpoint(&self, name: &str, reason: &str) -> StoreResult<()>;
}
