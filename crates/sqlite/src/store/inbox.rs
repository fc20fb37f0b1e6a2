//! The inbox as an operator uses it.

use std::time::Duration;

use async_trait::async_trait;
use postbox_core::inbox::{Inbox, Received, Retention};
use postbox_core::operations::BatchStep;
use postbox_core::store::StoreResult;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, named_params};
use uuid::Uuid;

use super::SqliteStore;
use super::clock::{self, Millis};
use super::event::{bytes, uuid};
use super::failure::Attempt;
use crate::schema::Contents;

#[async_trait]
impl Inbox for SqliteStore {
    async fn migrate_inbox(&self) -> StoreResult<Vec<u32>> {
        self.apply_migrations(Contents::InboxOnly).await
    }

    async fn inbox_retention(&self) -> StoreResult<Option<Retention>> {
        self.operations.call_unbounded(|connection, _| retention(connection, "inbox")).await
    }

    async fn prune_inbox(&self, older_than: Duration, after: i64, limit: u32) -> StoreResult<BatchStep> {
        self.operations.call_unbounded(move |connection, _| prune(connection, older_than, after, limit)).await
    }

    async fn received(&self, consumer: &str, after: Option<Uuid>, limit: u32) -> StoreResult<Vec<Received>> {
        let consumer = consumer.to_owned();
        self.operations
            .call_unbounded(move |connection, _| received(connection, &consumer, after, limit))
            .await
    }

    async fn estimate_received(&self, consumer: &str) -> StoreResult<u64> {
        let consumer = consumer.to_owned();
        self.operations
            .call_unbounded(move |connection, _| {
                let count = "SELECT count(*) AS count FROM inbox WHERE consumer = ?1";
                Ok(connection.query_row(count, [&consumer], |row| bytes(row, "count"))?)
            })
            .await
    }
}

/// What pruning of `scope` (`outbox` or `inbox`) keeps.
pub(crate) fn retention(connection: &Connection, scope: &str) -> Attempt<Option<Retention>> {
    let query = "SELECT keep_ms, complete_since FROM outbox_retention WHERE scope = ?1";
    let found = connection.prepare_cached(query)?.query_row([scope], |row| {
        Ok(Retention {
            keep: Duration::from_millis(bytes(row, "keep_ms")?),
            complete_since: clock::timestamp(row, "complete_since")?,
        })
    });
    Ok(found.optional()?)
}

/// Remembers what pruning keeps, in the transaction that removes the rest.
pub(crate) fn remember_retention(
    transaction: &Connection,
    scope: &str,
    keep: Duration,
    complete_since: Millis,
) -> rusqlite::Result<()> {
    transaction.prepare_cached(include_str!("sql/remember_retention.sql"))?.execute(named_params! {
        ":scope": scope,
        ":keep_ms": i64::try_from(keep.as_millis()).unwrap_or(i64::MAX),
        // An age beyond the calendar keeps everything.
        ":complete_since": complete_since.max(0),
    })?;
    Ok(())
}

fn prune(connection: &mut Connection, older_than: Duration, after: i64, limit: u32) -> Attempt<BatchStep> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let age = i64::try_from(older_than.as_millis()).unwrap_or(Millis::MAX);
    let before = clock::now(&transaction)?.saturating_sub(age);
    remember_retention(&transaction, "inbox", older_than, before)?;
    let (looked_at, cursor, youngest): (u32, i64, Option<Millis>) = transaction
        .prepare_cached(include_str!("sql/inbox_batch.sql"))?
        .query_row([after, limit.into()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let removed = transaction
        .prepare_cached("DELETE FROM inbox WHERE position > ?1 AND position <= ?2 AND received_at < ?3")?
        .execute([after, cursor, before])?;
    transaction.commit()?;
    let done = looked_at < limit || youngest.is_none_or(|youngest| youngest >= before);
    Ok(BatchStep { changed: u64::try_from(removed).unwrap_or(u64::MAX), cursor, done })
}

fn received(
    connection: &mut Connection,
    consumer: &str,
    after: Option<Uuid>,
    limit: u32,
) -> Attempt<Vec<Received>> {
    let mut statement = connection.prepare_cached(include_str!("sql/received.sql"))?;
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    let rows = statement.query_map((consumer, after, limit), |row| {
        Ok(Received {
            event_id: uuid(row, "event_id")?,
            position: row.get("position")?,
            received_at: clock::timestamp(row, "received_at")?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
