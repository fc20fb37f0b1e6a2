//! The inbox as an operator uses it. What consumers call is in `schema/0007_consuming.sql`.

use std::time::Duration;

use async_trait::async_trait;
use postbox_core::inbox::{Inbox, Received, Retention};
use postbox_core::operations::BatchStep;
use postbox_core::store::StoreResult;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::operating::{millis, read_count, read_step};
use crate::reading::{Columns, sql_count};
use crate::schema::Contents;
use crate::store::PostgresStore;

#[async_trait]
impl Inbox for PostgresStore {
    async fn migrate_inbox(&self) -> StoreResult<Vec<u32>> {
        self.apply_migrations(Contents::InboxOnly).await
    }

    async fn inbox_retention(&self) -> StoreResult<Option<Retention>> {
        self.read_retention("inbox").await
    }

    async fn prune_inbox(&self, older_than: Duration, after: i64, limit: u32) -> StoreResult<BatchStep> {
        let (limit, older) = (sql_count(limit), millis(older_than));
        let statement = "SELECT * FROM @.inbox_prune($1, $2, $3)";
        let params = [(&after as _, Type::INT8), (&limit as _, Type::INT4), (&older as _, Type::INT8)];
        read_step(&self.operate("forget old events", statement, &params).await?)
    }

    async fn received(&self, consumer: &str, after: Option<Uuid>, limit: u32) -> StoreResult<Vec<Received>> {
        let limit = i64::from(limit);
        let statement = include_str!("inbox/received.sql");
        let params = [(&consumer as _, Type::TEXT), (&after as _, Type::UUID), (&limit as _, Type::INT8)];
        let rows = self.operate("read the inbox", statement, &params).await?;
        rows.iter()
            .map(|row| {
                let mut columns = Columns::of(row, "an inbox row");
                Ok(Received {
                    event_id: columns.next()?,
                    position: columns.next()?,
                    received_at: columns.next()?,
                })
            })
            .collect()
    }

    async fn estimate_received(&self, consumer: &str) -> StoreResult<u64> {
        let statement = include_str!("inbox/estimate.sql");
        read_count(&self.operate("count the inbox", statement, &[(&consumer, Type::TEXT)]).await?)
    }
}

impl PostgresStore {
    /// What pruning of `scope` (`outbox` or `inbox`) keeps.
    pub(crate) async fn read_retention(&self, scope: &str) -> StoreResult<Option<Retention>> {
        let statement = "SELECT r.keep_ms, r.complete_since FROM @.outbox_retention r WHERE r.scope = $1";
        let rows = self.operate("read what is kept", statement, &[(&scope, Type::TEXT)]).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let mut columns = Columns::of(row, "a retention");
        let keep = Duration::from_millis(columns.count()?);
        Ok(Some(Retention { keep, complete_since: columns.next()? }))
    }
}
