//! A store that passes everything on and remembers when outcomes became durable.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use postbox_core::delivery::ParkedLane;
use postbox_core::endpoint::EndpointSet;
use postbox_core::event::{OutboxId, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term};
use postbox_core::store::{
    Arrival, Beginning, DueRequest, RefillRequest, Scan, ScanRequest, SettleBatch, SettleReport, Store,
    StoreResult,
};

/// What was settled so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Observation {
    /// Events that left the to-do list.
    pub(crate) events: u64,
    pub(crate) settles: u64,
    /// When the to-do list was asked for and, for the first time, held something.
    pub(crate) first: Option<SystemTime>,
    /// When the last settle that recorded something was answered.
    pub(crate) last: Option<SystemTime>,
}

/// See the module's documentation.
pub(crate) struct Observed<S> {
    inner: S,
    seen: Arc<Mutex<Observation>>,
}

fn lock(seen: &Mutex<Observation>) -> MutexGuard<'_, Observation> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S> Observed<S> {
    pub(crate) fn new(inner: S) -> (Self, Arc<Mutex<Observation>>) {
        let seen = Arc::default();
        (Self { inner, seen: Arc::clone(&seen) }, seen)
    }
}

#[async_trait]
impl<S: Store> Store for Observed<S> {
    async fn begin(&self, beginning: &Beginning, relay: RelayId) -> StoreResult<bool> {
        self.inner.begin(beginning, relay).await
    }

    async fn settle(&self, batch: &SettleBatch, relay: RelayId) -> StoreResult<SettleReport> {
        let report = self.inner.settle(batch, relay).await?;
        let mut seen = lock(&self.seen);
        seen.events += batch.dispatched.len() as u64;
        seen.settles += 1;
        seen.last = Some(SystemTime::now());
        Ok(report)
    }

    async fn check_schema(&self) -> StoreResult<()> {
        self.inner.check_schema().await
    }

    async fn scan(&self, request: &ScanRequest) -> StoreResult<Scan> {
        let asked = SystemTime::now();
        let scan = self.inner.scan(request).await?;
        if !scan.rows.is_empty() {
            lock(&self.seen).first.get_or_insert(asked);
        }
        Ok(scan)
    }

    async fn load(&self, ids: &[(Shard, OutboxId)]) -> StoreResult<Vec<Arrival>> {
        self.inner.load(ids).await
    }

    async fn refill(&self, request: &RefillRequest) -> StoreResult<Vec<Arrival>> {
        self.inner.refill(request).await
    }

    async fn due(&self, request: &DueRequest) -> StoreResult<Vec<ParkedLane>> {
        self.inner.due(request).await
    }

    async fn payload(&self, id: OutboxId) -> StoreResult<Option<String>> {
        self.inner.payload(id).await
    }

    async fn heartbeat(&self, heartbeat: &Heartbeat, joined: bool) -> StoreResult<LeaseAnswer> {
        self.inner.heartbeat(heartbeat, joined).await
    }

    async fn hand_back(&self, relay: RelayId, terms: &[Term]) -> StoreResult<()> {
        self.inner.hand_back(relay, terms).await
    }

    async fn leave(&self, relay: RelayId) -> StoreResult<()> {
        self.inner.leave(relay).await
    }

    async fn endpoints(&self, known: i64) -> StoreResult<Option<EndpointSet>> {
        self.inner.endpoints(known).await
    }

    async fn disable_endpoint(&self, name: &str, reason: &str) -> StoreResult<()> {
        self.inner.disable_endpoint(name, reason).await
    }
}
