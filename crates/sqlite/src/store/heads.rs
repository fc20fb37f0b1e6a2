//! The head of a lane: its unfinished delivery with the lowest id, which is `retry` or `held`; all behind it wait.
//!
//! Every transaction that changes an unfinished delivery ends by restoring this for the lanes it touched.

use std::collections::BTreeSet;

use postbox_core::delivery::DestinationName;
use postbox_core::event::{LaneId, OutboxId};
use rusqlite::{Connection, OptionalExtension as _, named_params};

use super::clock::Millis;
use super::event::text;

/// Lanes that a transaction touched.
#[derive(Debug, Default)]
pub(crate) struct TouchedLanes(BTreeSet<(LaneId, DestinationName)>);

impl TouchedLanes {
    pub(crate) fn insert(&mut self, lane_id: LaneId, destination: &DestinationName) {
        self.0.insert((lane_id, destination.clone()));
    }

    /// Gives each of the lanes the head it must have.
    pub(crate) fn restore_heads(&self, transaction: &Connection, now: Millis) -> rusqlite::Result<()> {
        for (lane_id, destination) in &self.0 {
            restore_head(transaction, *lane_id, destination, now)?;
        }
        Ok(())
    }
}

fn restore_head(
    transaction: &Connection,
    lane_id: LaneId,
    destination: &str,
    now: Millis,
) -> rusqlite::Result<()> {
    let front: Option<(OutboxId, String)> = transaction
        .prepare_cached(include_str!("sql/lane_front.sql"))?
        .query_row(named_params! { ":lane_id": lane_id, ":destination": destination, ":limit": 1 }, |row| {
            Ok((row.get("outbox_id")?, text(row, "state")?))
        })
        .optional()?;
    let Some((front, state)) = front else { return Ok(()) };
    transaction
        .prepare_cached(include_str!("sql/demote.sql"))?
        .execute(named_params! { ":lane_id": lane_id, ":destination": destination, ":front": front })?;
    if state == "waiting" {
        transaction
            .prepare_cached(include_str!("sql/promote.sql"))?
            .execute(named_params! { ":id": front, ":destination": destination, ":now": now })?;
    }
    Ok(())
}
