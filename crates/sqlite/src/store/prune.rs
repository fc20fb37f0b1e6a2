//! Removing what is done with. An aggregate's row stays, and with it the sequence that its next event continues.

use std::time::Duration;

use postbox_core::event::OutboxId;
use postbox_core::operations::{BatchStep, PrunePolicy};
use rusqlite::{Connection, TransactionBehavior, named_params};

use super::clock::{self, Millis};
use super::event::bytes;
use super::failure::Attempt;
use super::inbox;

const PRUNABLE: &str = include_str!("sql/prunable.sql");

/// Events that one batch looks at, at most: it holds the write lock for tens of milliseconds.
const LOOK_AT: u32 = 5_000;

/// Removes up to `limit` events with ids above `after`.
pub(crate) fn prune(
    connection: &mut Connection,
    policy: &PrunePolicy,
    after: OutboxId,
    limit: u32,
) -> Attempt<BatchStep> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let cutoffs = Cutoffs::of(&transaction, policy)?;
    inbox::remember_retention(
        &transaction,
        "outbox",
        policy.dead_older_than.max(policy.older_than),
        cutoffs.finished_before,
    )?;
    let batch = Batch::choose(&transaction, &cutoffs, after, limit)?;
    {
        let mut deliveries =
            transaction.prepare_cached("DELETE FROM outbox_delivery WHERE outbox_id = ?1")?;
        let mut reports = transaction.prepare_cached("DELETE FROM outbox_report WHERE outbox_id = ?1")?;
        let mut event = transaction.prepare_cached("DELETE FROM outbox WHERE id = ?1")?;
        for id in &batch.prunable {
            deliveries.execute([id])?;
            reports.execute([id])?;
            event.execute([id])?;
        }
    }
    // Those of messages that nobody here sent.
    transaction.execute(
        "DELETE FROM outbox_report WHERE outbox_id IS NULL AND received_at < ?1",
        [cutoffs.finished_before],
    )?;
    transaction.commit()?;
    let changed = u64::try_from(batch.prunable.len()).unwrap_or(u64::MAX);
    Ok(BatchStep { changed, cursor: batch.cursor, done: batch.done })
}

/// How many events `policy` would remove.
pub(crate) fn count_prunable(connection: &mut Connection, policy: &PrunePolicy) -> Attempt<u64> {
    let snapshot = connection.transaction()?;
    let cutoffs = Cutoffs::of(&snapshot, policy)?;
    let count = snapshot.query_row(
        &format!("SELECT count(*) AS count FROM ({PRUNABLE}) WHERE prunable"),
        named_params! {
            ":finished_before": cutoffs.finished_before, ":dead_before": cutoffs.dead_before, ":after": 0, ":limit": -1,
        },
        |row| bytes(row, "count"),
    )?;
    Ok(count)
}

/// A policy's ages as moments.
struct Cutoffs {
    finished_before: Millis,
    dead_before: Millis,
}

impl Cutoffs {
    fn of(connection: &Connection, policy: &PrunePolicy) -> rusqlite::Result<Self> {
        let now = clock::now(connection)?;
        let before =
            |age: Duration| now.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(Millis::MAX));
        Ok(Self { finished_before: before(policy.older_than), dead_before: before(policy.dead_older_than) })
    }
}

/// What one batch removes.
struct Batch {
    prunable: Vec<OutboxId>,
    /// The last event looked at.
    cursor: OutboxId,
    /// Whether nothing old is left behind the cursor.
    done: bool,
}

impl Batch {
    fn choose(
        transaction: &Connection,
        cutoffs: &Cutoffs,
        after: OutboxId,
        limit: u32,
    ) -> rusqlite::Result<Self> {
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let look_at = LOOK_AT.max(u32::try_from(limit).unwrap_or(LOOK_AT));
        let mut batch = Self { prunable: Vec::new(), cursor: after, done: false };
        let mut statement = transaction.prepare_cached(PRUNABLE)?;
        let mut rows = statement.query(named_params! {
            ":finished_before": cutoffs.finished_before, ":dead_before": cutoffs.dead_before, ":after": after,
            ":limit": look_at,
        })?;
        let (mut looked_at, mut any_old) = (0, false);
        while let Some(row) = rows.next()? {
            if batch.prunable.len() >= limit {
                return Ok(batch);
            }
            batch.cursor = row.get("id")?;
            looked_at += 1;
            any_old |= row.get::<_, bool>("old")?;
            if row.get("prunable")? {
                batch.prunable.push(batch.cursor);
            }
        }
        // A whole batch of young events: those behind them are younger still.
        batch.done = looked_at < look_at || !any_old;
        Ok(batch)
    }
}
