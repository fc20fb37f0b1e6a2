//! A store whose answers get lost.

use std::sync::Arc;

use async_trait::async_trait;
use postbox_core::delivery::ParkedLane;
use postbox_core::endpoint::EndpointSet;
use postbox_core::event::{OutboxId, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term};
use postbox_core::store::{
    Arrival, Beginning, DueRequest, RefillRequest, Scan, ScanRequest, SettleBatch, SettleReport, Store,
    StoreError, StoreErrorKind, StoreResult,
};

use super::plan::{Fault, FaultPlan};

/// Passes calls on to another store and fails as its plan says, always as `Unavailable`: from where the caller stands,
/// "refused" and "done, but the answer was lost" look the same, and it must be right in both cases.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: S,
    plan: Arc<FaultPlan>,
}

impl<S: Store> FaultyStore<S> {
    /// Wraps `inner`; `plan` is kept by the caller too, to ask it afterwards what happened.
    pub fn new(inner: S, plan: Arc<FaultPlan>) -> Self {
        Self { inner, plan }
    }

    async fn meet<T>(&self, call: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
        let unavailable =
            |what: &str| Err(StoreError::new(StoreErrorKind::Unavailable, format!("fault injected: {what}")));
        match self.plan.draw() {
            Fault::None => call.await,
            Fault::Refused => unavailable("nothing was done"),
            Fault::AnswerLost => {
                call.await?;
                unavailable("done, and the answer was lost")
            }
        }
    }
}

#[async_trait]
impl<S: Store> Store for FaultyStore<S> {
    async fn check_schema(&self) -> StoreResult<()> {
        self.meet(self.inner.check_schema()).await
    }

    async fn scan(&self, request: &ScanRequest) -> StoreResult<Scan> {
        self.meet(self.inner.scan(request)).await
    }

    async fn load(&self, ids: &[(Shard, OutboxId)]) -> StoreResult<Vec<Arrival>> {
        self.meet(self.inner.load(ids)).await
    }

    async fn refill(&self, request: &RefillRequest) -> StoreResult<Vec<Arrival>> {
        self.meet(self.inner.refill(request)).await
    }

    async fn due(&self, request: &DueRequest) -> StoreResult<Vec<ParkedLane>> {
        self.meet(self.inner.due(request)).await
    }

    async fn payload(&self, id: OutboxId) -> StoreResult<Option<String>> {
        self.meet(self.inner.payload(id)).await
    }

    async fn begin(&self, beginning: &Beginning, relay: RelayId) -> StoreResult<bool> {
        self.meet(self.inner.begin(beginning, relay)).await
    }

    async fn settle(&self, batch: &SettleBatch, relay: RelayId) -> StoreResult<SettleReport> {
        self.meet(self.inner.settle(batch, relay)).await
    }

    async fn heartbeat(&self, heartbeat: &Heartbeat, joined: bool) -> StoreResult<LeaseAnswer> {
        self.meet(self.inner.heartbeat(heartbeat, joined)).await
    }

    async fn hand_back(&self, relay: RelayId, terms: &[Term]) -> StoreResult<()> {
        self.meet(self.inner.hand_back(relay, terms)).await
    }

    async fn leave(&self, relay: RelayId) -> StoreResult<()> {
        self.meet(self.inner.leave(relay)).await
    }

    async fn endpoints(&self, known: i64) -> StoreResult<Option<EndpointSet>> {
        self.meet(self.inner.endpoints(known)).await
    }

    async fn disable_endpoint(&self, name: &str, reason: &str) -> StoreResult<()> {
        self.meet(self.inner.disable_endpoint(name, reason)).await
    }
}
