//! The store: which thread does what.

mod begin;
mod clock;
mod connection;
mod due;
mod endpoints;
mod event;
mod failure;
mod heads;
mod history;
mod inbox;
mod lease;
mod listing;
mod location;
mod operations;
mod prune;
#[cfg(test)]
mod query_plans;
mod replay;
mod reports;
mod scan;
mod selection;
mod sending;
mod settle;
mod status;
mod worker;

use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use postbox_core::delivery::ParkedLane;
use postbox_core::endpoint::EndpointSet;
use postbox_core::event::{OutboxId, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term};
use postbox_core::reports::{MessageReport, ReportPolicy, Reports, ReportsTaken};
use postbox_core::store::{
    Arrival, Beginning, DueRequest, RefillRequest, Scan, ScanRequest, SettleBatch, SettleReport, Store,
    StoreResult,
};

pub use self::location::parse_url;

use self::connection::Missing;
use self::worker::Worker;

/// An outbox or an inbox, or both, in a SQLite file, as the relay and an operator use it.
///
/// Each kind of call has a thread and a connection of its own, opened by the first call of that kind: in WAL mode
/// readers and the writer do not wait for each other, and writers take turns.
pub struct SqliteStore {
    path: PathBuf,
    reads: Worker,
    settles: Worker,
    payloads: Worker,
    beginnings: Worker,
    leases: Worker,
    operations: Worker,
    migrations: Worker,
}

impl SqliteStore {
    /// The outbox in the file at `path`. Nothing is opened yet; only [`migrate`] creates a missing file.
    ///
    /// [`migrate`]: postbox_core::operations::Operations::migrate
    ///
    /// # Errors
    /// When `path` is no file's name, but stands for a database in memory.
    pub fn open(path: impl Into<PathBuf>) -> StoreResult<Self> {
        let path = path.into();
        location::refuse_nameless(&path)?;
        let worker = |role| Worker::new(role, &path, Missing::Refuse);
        Ok(Self {
            reads: worker("reads"),
            settles: worker("settles"),
            payloads: worker("payloads"),
            beginnings: worker("beginnings"),
            leases: worker("leases"),
            operations: worker("operations"),
            migrations: Worker::new("migrations", &path, Missing::Create),
            path,
        })
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn check_schema(&self) -> StoreResult<()> {
        self.reads.call(|connection, path| failure::check_schema(connection, path)).await
    }

    async fn scan(&self, request: &ScanRequest) -> StoreResult<Scan> {
        let request = request.clone();
        self.reads.call(move |connection, _| scan::scan(connection, &request)).await
    }

    async fn load(&self, ids: &[(Shard, OutboxId)]) -> StoreResult<Vec<Arrival>> {
        let ids = ids.to_vec();
        self.reads.call(move |connection, _| event::load(connection, &ids)).await
    }

    async fn refill(&self, request: &RefillRequest) -> StoreResult<Vec<Arrival>> {
        let request = request.clone();
        self.reads.call(move |connection, _| event::refill(connection, &request)).await
    }

    async fn due(&self, request: &DueRequest) -> StoreResult<Vec<ParkedLane>> {
        let request = request.clone();
        self.reads.call(move |connection, _| due::due(connection, &request)).await
    }

    async fn payload(&self, id: OutboxId) -> StoreResult<Option<String>> {
        self.payloads.call(move |connection, _| event::read_payload(connection, id)).await
    }

    async fn begin(&self, beginning: &Beginning, relay: RelayId) -> StoreResult<bool> {
        let beginning = beginning.clone();
        self.beginnings.call(move |connection, _| begin::begin(connection, &beginning, relay)).await
    }

    async fn settle(&self, batch: &SettleBatch, relay: RelayId) -> StoreResult<SettleReport> {
        let batch = batch.clone();
        self.settles.call(move |connection, _| settle::settle(connection, &batch, relay)).await
    }

    async fn heartbeat(&self, heartbeat: &Heartbeat, joined: bool) -> StoreResult<LeaseAnswer> {
        let heartbeat = heartbeat.clone();
        self.leases.call(move |connection, _| lease::heartbeat(connection, &heartbeat, joined)).await
    }

    async fn hand_back(&self, relay: RelayId, terms: &[Term]) -> StoreResult<()> {
        let terms = terms.to_vec();
        self.leases.call(move |connection, _| lease::hand_back(connection, relay, &terms)).await
    }

    async fn leave(&self, relay: RelayId) -> StoreResult<()> {
        self.leases.call(move |connection, _| lease::leave(connection, relay)).await
    }

    async fn endpoints(&self, known: i64) -> StoreResult<Option<EndpointSet>> {
        self.leases.call(move |connection, _| endpoints::read(connection, known)).await
    }

    async fn disable_endpoint(&self, name: &str, reason: &str) -> StoreResult<()> {
        let (name, reason) = (name.to_owned(), reason.to_owned());
        self.leases
            .call(move |connection, _| endpoints::disable(connection, &name, &reason).map(|_changed| ()))
            .await
    }
}

#[async_trait]
impl Reports for SqliteStore {
    async fn take_in(&self, reports: &[MessageReport], policy: &ReportPolicy) -> StoreResult<ReportsTaken> {
        let (reports, policy) = (reports.to_vec(), policy.clone());
        self.operations.call(move |connection, _| reports::take_in(connection, &reports, &policy)).await
    }
}
