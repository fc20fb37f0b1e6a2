//! The operator's half of the store.

use async_trait::async_trait;
use postbox_core::delivery::DeliveryState;
use postbox_core::event::OutboxId;
use postbox_core::operations::{
    BatchStep, DeliveryStory, EventSummary, Operations, Page, PrunePolicy, Selection, ShardStatus, Status,
    Story,
};
use postbox_core::store::StoreResult;
use uuid::Uuid;

use super::SqliteStore;
use super::failure::{Failure, newer};
use super::replay::{self, Command};
use super::{listing, prune, status};
use crate::schema::{self, Contents, MigrateError};

#[async_trait]
impl Operations for SqliteStore {
    async fn migrate(&self) -> StoreResult<Vec<u32>> {
        self.apply_migrations(Contents::Everything).await
    }

    async fn status(&self) -> StoreResult<Status> {
        self.operations.call_unbounded(|connection, _| status::status(connection)).await
    }

    async fn shards(&self) -> StoreResult<Vec<ShardStatus>> {
        self.operations.call_unbounded(|connection, _| status::shards(connection)).await
    }

    async fn events(&self, selection: &Selection, page: Page) -> StoreResult<Vec<EventSummary>> {
        let selection = selection.clone();
        self.operations
            .call_unbounded(move |connection, _| listing::events(connection, &selection, page))
            .await
    }

    async fn story(&self, event_id: Uuid, with_payload: bool) -> StoreResult<Option<Story>> {
        self.operations
            .call_unbounded(move |connection, _| listing::story(connection, event_id, with_payload))
            .await
    }

    async fn deliveries(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        page: Page,
    ) -> StoreResult<Vec<DeliveryStory>> {
        let (selection, states) = (selection.clone(), states.to_vec());
        self.operations
            .call_unbounded(move |connection, _| listing::deliveries(connection, &selection, &states, page))
            .await
    }

    async fn count_deliveries(&self, selection: &Selection, states: &[DeliveryState]) -> StoreResult<u64> {
        let (selection, states) = (selection.clone(), states.to_vec());
        self.operations
            .call_unbounded(move |connection, _| listing::count_deliveries(connection, &selection, &states))
            .await
    }

    async fn replay(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep> {
        self.command(Command::Replay, selection, states, after, limit).await
    }

    async fn discard(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep> {
        self.command(Command::Discard, selection, states, after, limit).await
    }

    async fn count_prunable(&self, policy: &PrunePolicy) -> StoreResult<u64> {
        let policy = *policy;
        self.operations.call_unbounded(move |connection, _| prune::count_prunable(connection, &policy)).await
    }

    async fn prune(&self, policy: &PrunePolicy, after: OutboxId, limit: u32) -> StoreResult<BatchStep> {
        let policy = *policy;
        self.operations
            .call_unbounded(move |connection, _| prune::prune(connection, &policy, after, limit))
            .await
    }
}

impl SqliteStore {
    pub(super) async fn apply_migrations(&self, contents: Contents) -> StoreResult<Vec<u32>> {
        self.migrations
            .call_unbounded(move |connection, path| {
                schema::apply(connection, contents).map_err(|error| match error {
                    MigrateError::Newer { found } => Failure::Store(newer(path, found)),
                    MigrateError::Sqlite(error) => Failure::Sqlite(error),
                })
            })
            .await
    }

    async fn command(
        &self,
        command: Command,
        selection: &Selection,
        states: &[DeliveryState],
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep> {
        let (selection, states) = (selection.clone(), states.to_vec());
        self.operations
            .call_unbounded(move |connection, _| {
                replay::apply(connection, command, &selection, &states, after, limit)
            })
            .await
    }
}
