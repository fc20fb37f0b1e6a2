//! The store: connections, statements, and the two contracts they fulfil.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use postbox_core::delivery::{DeliveryState, ParkedLane};
use postbox_core::endpoint::{EndpointRecord, EndpointSet};
use postbox_core::event::{OutboxId, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term};
use postbox_core::operations::{
    BatchStep, DeliveryStory, EventSummary, Operations, Page, PrunePolicy, Selection, ShardStatus, Status,
    Story,
};
use postbox_core::store::{
    Arrival, Beginning, DueRequest, RefillRequest, Scan, ScanRequest, SettleBatch, SettleReport, Store,
    StoreResult,
};
use uuid::Uuid;

use crate::connection::Connections;
use crate::horizon::Horizon;
use crate::schema::{Contents, prefix};
use crate::target::Target;

/// Longest time of one of the relay's calls: below the 30 s that the contract allows, above any lock timeout.
const RELAY_CALL: Duration = Duration::from_secs(20);

/// Longest time of one of the operator's calls, which may read whole tables.
const OPERATOR_CALL: Duration = Duration::from_secs(15 * 60);

/// Connections for payloads, which the relay reads several at a time.
const OTHER_CONNECTIONS: usize = 4;

/// An outbox in a PostgreSQL database.
///
/// Connects when first asked for something, and again after a failure. Must be used inside a Tokio runtime with time
/// and I/O enabled.
pub struct PostgresStore {
    pub(crate) schema: Option<String>,
    pub(crate) reads: Connections,
    pub(crate) settles: Connections,
    pub(crate) leases: Connections,
    /// Payloads, and attempts that begin.
    pub(crate) others: Connections,
    pub(crate) operations: Connections,
    pub(crate) horizon: Mutex<Horizon>,
    pub(crate) statements: Statements,
}

/// Texts of the calls, with the schema in front of each function.
pub(crate) struct Statements {
    pub(crate) horizon: String,
    pub(crate) scan: String,
    pub(crate) load: String,
    pub(crate) refill: String,
    pub(crate) due: String,
    pub(crate) payload: String,
    pub(crate) settle: String,
    pub(crate) begin: String,
    pub(crate) heartbeat: String,
    pub(crate) hand_back: String,
    pub(crate) leave: String,
    pub(crate) endpoints: String,
    pub(crate) disable_destination: String,
}

impl Statements {
    fn new(schema: Option<&str>) -> Self {
        let at = prefix(schema);
        let call = |function: &str, arguments: u8| {
            let numbers: Vec<String> = (1..=arguments).map(|number| format!("${number}")).collect();
            format!("SELECT * FROM {at}{function}({})", numbers.join(", "))
        };
        Self {
            horizon: call("outbox_horizon", 2),
            scan: call("outbox_scan", 6),
            load: call("outbox_load", 2),
            refill: call("outbox_refill", 5),
            due: call("outbox_due", 4),
            payload: format!("SELECT payload::text FROM {at}outbox WHERE id = $1"),
            settle: call("outbox_settle", 22),
            begin: call("outbox_begin", 7),
            heartbeat: call("outbox_heartbeat", 8),
            hand_back: call("outbox_hand_back", 3),
            leave: call("outbox_leave", 1),
            endpoints: include_str!("endpoints/read.sql").replace("@.", &at),
            disable_destination: call("outbox_disable_destination", 2),
        }
    }
}

impl PostgresStore {
    /// The outbox at `url` (a `postgres://` URL or `key=value` pairs, as libpq understands them), in `schema` or in
    /// the first schema of the connection's search path. Nothing is connected yet.
    ///
    /// # Errors
    /// When `url` cannot be understood or its certificates cannot be read.
    pub fn connect(url: &str, schema: Option<&str>) -> StoreResult<Self> {
        let target = Target::parse(url)?;
        let connections = |size, limit| Connections::new(target.clone(), size, limit);
        Ok(Self {
            schema: schema.map(str::to_owned),
            reads: connections(1, RELAY_CALL),
            settles: connections(1, RELAY_CALL),
            leases: connections(1, RELAY_CALL),
            others: connections(OTHER_CONNECTIONS, RELAY_CALL),
            operations: connections(1, OPERATOR_CALL),
            horizon: Mutex::default(),
            statements: Statements::new(schema),
        })
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn check_schema(&self) -> StoreResult<()> {
        self.check_version().await
    }

    async fn scan(&self, request: &ScanRequest) -> StoreResult<Scan> {
        self.read_todo(request).await
    }

    async fn load(&self, ids: &[(Shard, OutboxId)]) -> StoreResult<Vec<Arrival>> {
        self.load_events(ids).await
    }

    async fn refill(&self, request: &RefillRequest) -> StoreResult<Vec<Arrival>> {
        self.refill_aggregate(request).await
    }

    async fn due(&self, request: &DueRequest) -> StoreResult<Vec<ParkedLane>> {
        self.due_lanes(request).await
    }

    async fn payload(&self, id: OutboxId) -> StoreResult<Option<String>> {
        self.read_payload(id).await
    }

    async fn begin(&self, beginning: &Beginning, relay: RelayId) -> StoreResult<bool> {
        self.begin_attempt(beginning, relay).await
    }

    async fn settle(&self, batch: &SettleBatch, relay: RelayId) -> StoreResult<SettleReport> {
        self.record(batch, relay).await
    }

    async fn heartbeat(&self, heartbeat: &Heartbeat, joined: bool) -> StoreResult<LeaseAnswer> {
        self.beat(heartbeat, joined).await
    }

    async fn hand_back(&self, relay: RelayId, terms: &[Term]) -> StoreResult<()> {
        self.give_back(relay, terms).await
    }

    async fn leave(&self, relay: RelayId) -> StoreResult<()> {
        self.resign(relay).await
    }

    async fn endpoints(&self, known: i64) -> StoreResult<Option<EndpointSet>> {
        self.read_endpoints(known).await
    }

    async fn disable_endpoint(&self, name: &str, reason: &str) -> StoreResult<()> {
        self.disable(name, reason).await
    }
}

#[async_trait]
impl Operations for PostgresStore {
    async fn migrate(&self) -> StoreResult<Vec<u32>> {
        self.apply_migrations(Contents::Everything).await
    }

    async fn status(&self) -> StoreResult<Status> {
        self.read_status().await
    }

    async fn shards(&self) -> StoreResult<Vec<ShardStatus>> {
        self.list_shards().await
    }

    async fn events(&self, selection: &Selection, page: Page) -> StoreResult<Vec<EventSummary>> {
        self.list_events(selection, page).await
    }

    async fn story(&self, event_id: Uuid, with_payload: bool) -> StoreResult<Option<Story>> {
        self.read_story(event_id, with_payload).await
    }

    async fn deliveries(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        page: Page,
    ) -> StoreResult<Vec<DeliveryStory>> {
        self.list_deliveries(selection, states, page).await
    }

    async fn count_deliveries(&self, selection: &Selection, states: &[DeliveryState]) -> StoreResult<u64> {
        self.count_selected(selection, states).await
    }

    async fn replay(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep> {
        self.change_batch("outbox_replay", selection, states, after, limit).await
    }

    async fn discard(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep> {
        self.change_batch("outbox_discard", selection, states, after, limit).await
    }

    async fn count_prunable(&self, policy: &PrunePolicy) -> StoreResult<u64> {
        self.count_removable(policy).await
    }

    async fn prune(&self, policy: &PrunePolicy, after: OutboxId, limit: u32) -> StoreResult<BatchStep> {
        self.prune_batch(policy, after, limit).await
    }

    async fn list_endpoints(&self) -> StoreResult<Vec<EndpointRecord>> {
        self.list_records(None).await
    }

    async fn find_endpoint(&self, name: &str) -> StoreResult<Option<EndpointRecord>> {
        Ok(self.list_records(Some(name)).await?.pop())
    }

    async fn add_endpoint(&self, name: &str, settings: &str, secret: Option<&str>) -> StoreResult<bool> {
        self.insert_endpoint(name, settings, secret).await
    }

    async fn change_endpoint(&self, name: &str, seen: &str, settings: &str) -> StoreResult<bool> {
        self.change_settings(name, seen, settings).await
    }

    async fn switch_endpoint(&self, name: &str, reason: Option<&str>) -> StoreResult<bool> {
        self.switch(name, reason).await
    }

    async fn add_secret(&self, name: &str, secret: &str, keep: Duration) -> StoreResult<bool> {
        self.insert_secret(name, secret, keep).await
    }

    async fn remove_endpoint(&self, name: &str) -> StoreResult<Option<i64>> {
        self.delete_endpoint(name).await
    }

    async fn discard_removed(&self, destination: &str, reason: &str, limit: u32) -> StoreResult<u64> {
        self.discard_of_removed(destination, reason, limit).await
    }
}
