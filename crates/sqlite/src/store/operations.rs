//! The operator's half of the store.

use std::time::Duration;

use async_trait::async_trait;
use postbox_core::delivery::DeliveryState;
use postbox_core::endpoint::EndpointRecord;
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
use super::{endpoints, listing, prune, status};
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

    async fn list_endpoints(&self) -> StoreResult<Vec<EndpointRecord>> {
        self.operations.call_unbounded(|connection, _| endpoints::list(connection, None)).await
    }

    async fn find_endpoint(&self, name: &str) -> StoreResult<Option<EndpointRecord>> {
        let name = name.to_owned();
        let list = move |connection: &mut _, _: &_| endpoints::list(connection, Some(&name));
        Ok(self.operations.call_unbounded(list).await?.pop())
    }

    async fn add_endpoint(&self, name: &str, settings: &str, secret: Option<&str>) -> StoreResult<bool> {
        let (name, settings, secret) = (name.to_owned(), settings.to_owned(), secret.map(str::to_owned));
        self.operations
            .call_unbounded(move |connection, _| {
                endpoints::add(connection, &name, &settings, secret.as_deref())
            })
            .await
    }

    async fn change_endpoint(&self, name: &str, seen: &str, settings: &str) -> StoreResult<bool> {
        let (name, seen, settings) = (name.to_owned(), seen.to_owned(), settings.to_owned());
        self.operations
            .call_unbounded(move |connection, _| endpoints::change(connection, &name, &seen, &settings))
            .await
    }

    async fn switch_endpoint(&self, name: &str, reason: Option<&str>) -> StoreResult<bool> {
        let (name, reason) = (name.to_owned(), reason.map(str::to_owned));
        self.operations
            .call_unbounded(move |connection, _| match &reason {
                Some(reason) => endpoints::disable(connection, &name, reason),
                None => endpoints::enable(connection, &name),
            })
            .await
    }

    async fn add_secret(&self, name: &str, secret: &str, keep: Duration) -> StoreResult<bool> {
        let (name, secret) = (name.to_owned(), secret.to_owned());
        self.operations
            .call_unbounded(move |connection, _| endpoints::add_secret(connection, &name, &secret, keep))
            .await
    }

    async fn remove_endpoint(&self, name: &str) -> StoreResult<Option<i64>> {
        let name = name.to_owned();
        self.operations.call_unbounded(move |connection, _| endpoints::remove(connection, &name)).await
    }

    async fn discard_removed(&self, destination: &str, reason: &str, limit: u32) -> StoreResult<u64> {
        let (destination, reason) = (destination.to_owned(), reason.to_owned());
        self.operations
            .call_unbounded(move |connection, _| {
                endpoints::discard_removed(connection, &destination, &reason, limit)
            })
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
