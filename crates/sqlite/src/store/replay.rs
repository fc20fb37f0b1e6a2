//! The way back: sending deliveries again, and giving them up. Both leave every lane with its head.

use postbox_core::delivery::{DeliveryState, DestinationName};
use postbox_core::event::{LaneId, OutboxId, Shard};
use postbox_core::operations::{BatchStep, Selection};
use rusqlite::{Connection, TransactionBehavior, params_from_iter};

use super::clock;
use super::event::text;
use super::failure::Attempt;
use super::heads::TouchedLanes;
use super::selection::Filter;

/// What to do with the selected deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Replay,
    Discard,
}

/// One batch of a command: up to `limit` deliveries with ids above `after`.
pub(crate) fn apply(
    connection: &mut Connection,
    command: Command,
    selection: &Selection,
    states: &[DeliveryState],
    after: OutboxId,
    limit: u32,
) -> Attempt<BatchStep> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (targets, done) = targets(&transaction, selection, states, after, limit)?;
    let mut touched = TouchedLanes::default();
    let mut changed = 0;
    for target in &targets {
        let applied = match command {
            Command::Replay if target.state == DeliveryState::Unrouted.as_str() => {
                route_again(&transaction, target)?;
                true
            }
            Command::Replay => replay(&transaction, target)?,
            Command::Discard => discard(&transaction, target)?,
        };
        if applied {
            changed += 1;
            touched.insert(target.lane_id, &target.destination);
        }
    }
    touched.restore_heads(&transaction, clock::now(&transaction)?)?;
    transaction.commit()?;
    Ok(BatchStep { changed, cursor: targets.last().map_or(after, |target| target.id), done })
}

/// A delivery that a command is about.
struct Target {
    id: OutboxId,
    destination: DestinationName,
    lane_id: LaneId,
    shard: Shard,
    state: String,
}

/// The next targets in order, and whether they are the last. Whole events only, since the next batch continues behind
/// an event: one that does not fit waits for the next batch, unless it is alone in this one.
fn targets(
    transaction: &Connection,
    selection: &Selection,
    states: &[DeliveryState],
    after: OutboxId,
    limit: u32,
) -> rusqlite::Result<(Vec<Target>, bool)> {
    let mut filter = Filter::deliveries(selection, states);
    filter.and("d.outbox_id > ?", after);
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    let mut targets = read_targets(transaction, &filter, limit.saturating_add(1))?;
    if targets.len() <= limit {
        return Ok((targets, true));
    }
    let beyond = targets[limit].id;
    targets.truncate(limit);
    targets.retain(|target| target.id != beyond);
    if targets.is_empty() {
        filter.and("d.outbox_id = ?", beyond);
        targets = read_targets(transaction, &filter, usize::MAX)?;
    }
    Ok((targets, false))
}

fn read_targets(transaction: &Connection, filter: &Filter, limit: usize) -> rusqlite::Result<Vec<Target>> {
    let sql = format!(
        "SELECT d.outbox_id, d.destination, d.lane_id, d.shard, d.state FROM {} WHERE {} \
         ORDER BY d.outbox_id, d.destination LIMIT {}",
        filter.joined_tables(),
        filter.sql(),
        i64::try_from(limit).unwrap_or(-1),
    );
    let mut statement = transaction.prepare(&sql)?;
    let targets = statement.query_map(params_from_iter(filter.values()), |row| {
        Ok(Target {
            id: row.get("outbox_id")?,
            destination: text(row, "destination")?.into(),
            lane_id: row.get("lane_id")?,
            shard: row.get("shard")?,
            state: text(row, "state")?,
        })
    })?;
    targets.collect()
}

fn replay(transaction: &Connection, target: &Target) -> rusqlite::Result<bool> {
    let changed = transaction
        .prepare_cached(include_str!("sql/replay.sql"))?
        .execute((target.id, &*target.destination))?;
    Ok(changed > 0)
}

fn discard(transaction: &Connection, target: &Target) -> rusqlite::Result<bool> {
    let changed = transaction
        .prepare_cached(include_str!("sql/discard.sql"))?
        .execute((target.id, &*target.destination))?;
    Ok(changed > 0)
}

/// An event without a route has no destination to be sent to: it goes back on the to-do list, to be routed by what is
/// configured now. Freeing its shard has the next owner scan it from the beginning; a relay looks at nothing below its
/// cursor otherwise.
fn route_again(transaction: &Connection, target: &Target) -> rusqlite::Result<()> {
    transaction.execute(
        "DELETE FROM outbox_delivery WHERE outbox_id = ?1 AND destination = ?2",
        (target.id, &*target.destination),
    )?;
    transaction.execute(
        "INSERT INTO outbox_pending (shard, id, lane_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        (target.shard, target.id, target.lane_id),
    )?;
    transaction.execute("UPDATE outbox_shard SET owner = NULL WHERE shard = ?1", [target.shard])?;
    Ok(())
}
