//! The operator's calls: what is late and why, and the way back.
//!
//! Reading statements are files in `operating/`, in which `@.` stands for the schema. What changes something is a
//! function of the database (`schema/0006_operating.sql`), one short transaction per call.

mod inspecting;
mod selecting;
mod sending;

use postbox_core::delivery::DeliveryState;
use postbox_core::event::OutboxId;
use postbox_core::operations::{BatchStep, PrunePolicy, Selection};
use postbox_core::store::StoreResult;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use self::selecting::{Chosen, words};
use crate::connection::Param;
use crate::reading::{Columns, sql_count, unreadable};
use crate::schema::prefix;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Runs a statement of an operator's call.
    pub(crate) async fn operate(
        &self,
        what: &'static str,
        statement: &str,
        params: &[Param<'_>],
    ) -> StoreResult<Vec<Row>> {
        let statement = statement.replace("@.", &prefix(self.schema.as_deref()));
        self.operations.query(what, &statement, params).await
    }

    pub(crate) async fn change_batch(
        &self,
        function: &str,
        selection: &Selection,
        states: &[DeliveryState],
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep> {
        let (chosen, states, limit) = (Chosen::by(selection), words(states), sql_count(limit));
        let mut params: Vec<Param<'_>> =
            vec![(&states, Type::TEXT_ARRAY), (&after, Type::INT8), (&limit, Type::INT4)];
        params.extend(chosen.params());
        let statement = format!("SELECT * FROM @.{function}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
        let rows = self.operate("change deliveries", &statement, &params).await?;
        read_step(&rows)
    }

    pub(crate) async fn count_removable(&self, policy: &PrunePolicy) -> StoreResult<u64> {
        let (older, dead_older) = millis_of(policy);
        let statement = "SELECT count(*) FROM @.outbox_prunable(0, 9223372036854775807,
            clock_timestamp() - $1 * interval '1 millisecond', clock_timestamp() - $2 * interval '1 millisecond')";
        let rows = self
            .operate(
                "count what may be removed",
                statement,
                &[(&older, Type::INT8), (&dead_older, Type::INT8)],
            )
            .await?;
        read_count(&rows)
    }

    pub(crate) async fn prune_batch(
        &self,
        policy: &PrunePolicy,
        after: OutboxId,
        limit: u32,
    ) -> StoreResult<BatchStep> {
        let (older, dead_older) = millis_of(policy);
        let limit = sql_count(limit);
        let rows = self
            .operate(
                "remove old events",
                "SELECT pruned.*
                 FROM @.outbox_remember_retention('outbox', $4, $3), @.outbox_prune($1, $2, $3, $4) AS pruned",
                &[
                    (&after, Type::INT8),
                    (&limit, Type::INT4),
                    (&older, Type::INT8),
                    (&dead_older, Type::INT8),
                ],
            )
            .await?;
        read_step(&rows)
    }
}

/// Both ages in milliseconds; what is dead is never removed before what is delivered.
fn millis_of(policy: &PrunePolicy) -> (i64, i64) {
    let older = millis(policy.older_than);
    (older, millis(policy.dead_older_than).max(older))
}

/// An age in whole milliseconds, at most a thousand years, which are for ever.
pub(crate) fn millis(age: std::time::Duration) -> i64 {
    const THOUSAND_YEARS: i64 = 1_000 * 366 * 24 * 3_600 * 1_000;
    i64::try_from(age.as_millis()).unwrap_or(i64::MAX).min(THOUSAND_YEARS)
}

pub(crate) fn read_step(rows: &[Row]) -> StoreResult<BatchStep> {
    let row = rows.first().ok_or_else(|| unreadable("a batch", None))?;
    let mut columns = Columns::of(row, "a batch");
    Ok(BatchStep { changed: columns.count()?, cursor: columns.next()?, done: columns.next()? })
}

pub(crate) fn read_count(rows: &[Row]) -> StoreResult<u64> {
    let row = rows.first().ok_or_else(|| unreadable("a count", None))?;
    Columns::of(row, "a count").count()
}
