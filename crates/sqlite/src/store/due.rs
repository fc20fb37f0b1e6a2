//! Bringing parked lanes back.
//!
//! Heads are looked up shard by shard, each of them an index seek: whatever the shards of other relays hold, and
//! however many lanes are late, a call looks at no more rows than it was asked for per shard.

use postbox_core::delivery::{DeliveryState, DestinationName, ParkedDelivery, ParkedLane};
use postbox_core::event::LaneId;
use postbox_core::outcome::FailureClass;
use postbox_core::store::{DueRequest, StoreError, StoreErrorKind};
use rusqlite::{Connection, Row, named_params};

use super::clock::{self, Millis};
use super::event::{self, optional_text, text};
use super::failure::Attempt;

/// Reads the lanes of `request` that have a head due, the longest due first per destination.
pub(crate) fn due(connection: &mut Connection, request: &DueRequest) -> Attempt<Vec<ParkedLane>> {
    let snapshot = connection.transaction()?;
    let now = clock::now(&snapshot)?;
    let mut lanes = Vec::new();
    for (destination, limit) in &request.destinations {
        for lane_id in due_heads(&snapshot, request, destination, *limit, now)? {
            let deliveries = lane_front(&snapshot, lane_id, destination, request.rows_per_lane, now)?;
            if !deliveries.is_empty() {
                lanes.push(ParkedLane { destination: destination.clone(), lane_id, deliveries });
            }
        }
    }
    Ok(lanes)
}

fn due_heads(
    snapshot: &Connection,
    request: &DueRequest,
    destination: &str,
    limit: u32,
    now: Millis,
) -> rusqlite::Result<Vec<LaneId>> {
    let mut statement = snapshot.prepare_cached(include_str!("sql/due_heads.sql"))?;
    let mut heads: Vec<(Millis, LaneId)> = Vec::new();
    for shard in &request.shards {
        let rows = statement.query_map(
            named_params! { ":destination": destination, ":shard": shard, ":now": now, ":limit": limit },
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for head in rows {
            heads.push(head?);
        }
    }
    heads.sort_unstable();
    heads.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(heads.into_iter().map(|(_, lane_id)| lane_id).collect())
}

/// The first unfinished deliveries of a lane, in order.
fn lane_front(
    snapshot: &Connection,
    lane_id: LaneId,
    destination: &DestinationName,
    limit: u32,
    now: Millis,
) -> Attempt<Vec<ParkedDelivery>> {
    let mut statement = snapshot.prepare_cached(include_str!("sql/lane_front.sql"))?;
    let mut rows = statement
        .query(named_params! { ":lane_id": lane_id, ":destination": &**destination, ":limit": limit })?;
    let mut deliveries = Vec::new();
    while let Some(row) = rows.next()? {
        // An event that somebody deleted by hand: nothing of it can be sent.
        let Some(stored) = event::read(snapshot, row.get("outbox_id")?)? else { continue };
        deliveries.push(parked_delivery(row, stored, now)?);
    }
    Ok(deliveries)
}

fn parked_delivery(row: &Row<'_>, stored: event::StoredEvent, now: Millis) -> Attempt<ParkedDelivery> {
    let word = text(row, "state")?;
    let state = DeliveryState::parse(&word).ok_or_else(|| {
        StoreError::new(StoreErrorKind::Internal, format!("outbox_delivery holds an unknown state, {word:?}"))
    })?;
    let planned: Option<Millis> = row.get("next_attempt_at")?;
    let due_at = planned.unwrap_or(now).max(stored.deliver_after.unwrap_or(now));
    Ok(ParkedDelivery {
        attempts: row.get("attempts")?,
        uncounted: row.get("uncounted")?,
        state,
        due_in: clock::until(due_at, now),
        expires_in: stored.expires_at.map(|at| clock::until(at, now)),
        replay: row.get::<_, u32>("replays")? > 0,
        maybe_delivered: optional_text(row, "last_class")?.as_deref() == Some(FailureClass::Unknown.as_str()),
        event: stored.event,
    })
}
