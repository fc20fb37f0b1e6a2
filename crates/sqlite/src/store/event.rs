//! Reading events back.

use std::collections::HashMap;
use std::sync::Arc;

use postbox_core::delivery::DestinationName;
use postbox_core::event::{Event, LaneId, OutboxId, Payload, Shard};
use postbox_core::store::{Arrival, INLINE_PAYLOAD_BYTES, RefillRequest};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use uuid::Uuid;

use super::clock::{self, Millis};
use super::failure::Attempt;

/// An event with the moments that decide when it may be sent.
pub(crate) struct StoredEvent {
    pub(crate) event: Arc<Event>,
    pub(crate) deliver_after: Option<Millis>,
    pub(crate) expires_at: Option<Millis>,
}

/// Reads the event at `id`, if there is one.
pub(crate) fn read(connection: &Connection, id: OutboxId) -> rusqlite::Result<Option<StoredEvent>> {
    connection
        .prepare_cached(include_str!("sql/event.sql"))?
        .query_row(named_params! { ":id": id, ":inline_bytes": INLINE_PAYLOAD_BYTES }, stored_event)
        .optional()
}

/// Reads the payload of the event at `id`, if there is one.
pub(crate) fn read_payload(connection: &Connection, id: OutboxId) -> Attempt<Option<String>> {
    let payload = connection
        .prepare_cached("SELECT payload FROM outbox WHERE id = ?1")?
        .query_row([id], |row| text(row, 0))
        .optional()?;
    Ok(payload)
}

/// Reads events of the to-do list by id.
pub(crate) fn load(connection: &mut Connection, ids: &[(Shard, OutboxId)]) -> Attempt<Vec<Arrival>> {
    let snapshot = connection.transaction()?;
    let mut reader = ArrivalReader::new(&snapshot)?;
    let mut pending = snapshot.prepare_cached("SELECT 1 FROM outbox_pending WHERE shard = ?1 AND id = ?2")?;
    let mut ids = ids.to_vec();
    ids.sort_unstable_by_key(|&(_, id)| id);
    let mut arrivals = Vec::with_capacity(ids.len());
    for (shard, id) in ids {
        if pending.exists((shard, id))? {
            arrivals.extend(reader.arrival(id)?);
        }
    }
    Ok(arrivals)
}

/// Reads the next events of one aggregate that are on the to-do list.
pub(crate) fn refill(connection: &mut Connection, request: &RefillRequest) -> Attempt<Vec<Arrival>> {
    let snapshot = connection.transaction()?;
    let mut reader = ArrivalReader::new(&snapshot)?;
    let mut statement = snapshot.prepare_cached(include_str!("sql/refill.sql"))?;
    let mut rows = statement.query(named_params! {
        ":lane_id": request.lane_id, ":shard": request.shard, ":after_seq": request.after_seq,
        ":limit": request.limit,
    })?;
    let mut arrivals = Vec::new();
    while let Some(row) = rows.next()? {
        arrivals.extend(reader.arrival(row.get(0)?)?);
    }
    Ok(arrivals)
}

/// Reads arrivals out of one snapshot.
pub(crate) struct ArrivalReader<'a> {
    snapshot: &'a Connection,
    now: Millis,
    blocked: HashMap<LaneId, Vec<DestinationName>>,
}

impl<'a> ArrivalReader<'a> {
    pub(crate) fn new(snapshot: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self { snapshot, now: clock::now(snapshot)?, blocked: HashMap::new() })
    }

    /// The event at `id`, unless somebody deleted it.
    pub(crate) fn arrival(&mut self, id: OutboxId) -> rusqlite::Result<Option<Arrival>> {
        let Some(stored) = read(self.snapshot, id)? else { return Ok(None) };
        let now = self.now;
        Ok(Some(Arrival {
            blocked: self.blocked(stored.event.lane_id)?,
            due_in: clock::until(stored.deliver_after.unwrap_or(now), now),
            expires_in: stored.expires_at.map(|at| clock::until(at, now)),
            event: stored.event,
        }))
    }

    /// Destinations on which the lane has a parked head.
    fn blocked(&mut self, lane_id: LaneId) -> rusqlite::Result<Vec<DestinationName>> {
        if let Some(known) = self.blocked.get(&lane_id) {
            return Ok(known.clone());
        }
        let names = self
            .snapshot
            .prepare_cached(include_str!("sql/heads.sql"))?
            .query_map([lane_id], |row| text(row, 0).map(DestinationName::from))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        self.blocked.insert(lane_id, names.clone());
        Ok(names)
    }
}

fn stored_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let payload = match optional_text(row, "payload")? {
        Some(text) => Payload::Inline(text),
        None => Payload::Deferred(bytes(row, "payload_bytes")?),
    };
    let event = Event {
        id: row.get("id")?,
        event_id: uuid(row, "event_id")?,
        lane_id: row.get("lane_id")?,
        shard: row.get("shard")?,
        aggregate_type: text(row, "aggregate_type")?,
        aggregate_id: text(row, "aggregate_id")?,
        aggregate_seq: row.get("aggregate_seq")?,
        event_type: text(row, "event_type")?,
        payload,
        headers: optional_text(row, "headers")?,
        created_at: clock::timestamp(row, "created_at")?,
    };
    Ok(StoredEvent {
        event: Arc::new(event),
        deliver_after: row.get("deliver_after")?,
        expires_at: row.get("expires_at")?,
    })
}

/// The size in a column.
pub(crate) fn bytes(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

/// The text in a column. SQLite stores any bytes as text; one producer's broken UTF-8 must not stop everybody's relay,
/// so what is no UTF-8 is replaced.
pub(crate) fn text(row: &Row<'_>, column: impl rusqlite::RowIndex) -> rusqlite::Result<String> {
    optional_text(row, column).map(Option::unwrap_or_default)
}

/// Like [`text`], for a column that may be NULL.
pub(crate) fn optional_text(
    row: &Row<'_>,
    column: impl rusqlite::RowIndex,
) -> rusqlite::Result<Option<String>> {
    let bytes = row.get_ref(column)?.as_bytes_or_null()?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
}

/// The UUID stored as text in a column.
pub(crate) fn uuid(row: &Row<'_>, column: &str) -> rusqlite::Result<Uuid> {
    text(row, column)?.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::<uuid::Error>::new(error))
    })
}
