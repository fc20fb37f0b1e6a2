//! The state of the whole outbox: how late it is, and why.

use postbox_core::delivery::DeliveryState;
use postbox_core::operations::{
    COUNT_CAP, CappedCount, DestinationStatus, RelayStatus, ShardOwner, ShardStatus, Status,
};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, named_params};

use super::clock::{self, Millis};
use super::event::{optional_text, text, uuid};
use super::failure::Attempt;

/// The state of everything, in one snapshot.
pub(crate) fn status(connection: &mut Connection) -> Attempt<Status> {
    let snapshot = connection.transaction()?;
    let now = clock::now(&snapshot)?;
    let relays = relays(&snapshot, now)?;
    let (lag_seconds, oldest_event) =
        snapshot.query_row("SELECT lag_seconds, oldest_event FROM outbox_health", [], |row| {
            let oldest = row.get_ref("oldest_event")?.as_bytes_or_null()?.is_some();
            Ok((row.get("lag_seconds")?, oldest.then(|| uuid(row, "oldest_event")).transpose()?))
        })?;
    Ok(Status {
        now: clock::to_timestamp(now)?,
        lag_seconds,
        oldest_event,
        pending: count(&snapshot, "SELECT 1 FROM outbox_pending", [])?,
        in_flight: relays.iter().map(|relay| u64::from(relay.in_flight)).sum(),
        struggling: count(
            &snapshot,
            "SELECT 1 FROM outbox_delivery WHERE state IN ('retry', 'waiting', 'held') AND sent_at IS NULL",
            [],
        )?,
        dead: count_state(&snapshot, DeliveryState::Dead)?,
        unrouted: count_state(&snapshot, DeliveryState::Unrouted)?,
        destinations: destinations(&snapshot, now)?,
        relays,
    })
}

/// Every shard and who works on it.
pub(crate) fn shards(connection: &mut Connection) -> Attempt<Vec<ShardStatus>> {
    let snapshot = connection.transaction()?;
    let now = clock::now(&snapshot)?;
    let mut statement = snapshot.prepare_cached(include_str!("sql/shards.sql"))?;
    let rows = statement.query_map([], |row| {
        let owned = row.get_ref("relay")?.as_bytes_or_null()?.is_some();
        Ok(ShardStatus {
            shard: row.get("shard")?,
            epoch: row.get("epoch")?,
            owner: owned.then(|| shard_owner(row, now)).transpose()?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn shard_owner(row: &Row<'_>, now: Millis) -> rusqlite::Result<ShardOwner> {
    let taken_at: Millis = row.get("taken_at")?;
    let leased_until: Millis = row.get("leased_until")?;
    Ok(ShardOwner {
        relay: uuid(row, "relay")?,
        label: text(row, "label")?,
        held_seconds: seconds(now.saturating_sub(taken_at).max(0)),
        lease_seconds: seconds(leased_until.saturating_sub(now)),
    })
}

fn relays(snapshot: &Connection, now: Millis) -> rusqlite::Result<Vec<RelayStatus>> {
    let mut statement = snapshot.prepare_cached(include_str!("sql/relays.sql"))?;
    let rows = statement.query_map([], |row| {
        let left: Millis = row.get::<_, Millis>("leased_until")?.saturating_sub(now);
        Ok(RelayStatus {
            relay: uuid(row, "relay")?,
            label: text(row, "label")?,
            shards: row.get("shards")?,
            epoch: row.get("epoch")?,
            in_flight: row.get("in_flight")?,
            started_at: clock::timestamp(row, "started_at")?,
            lease_seconds: seconds(left),
            destinations_version: row.get("destinations_version")?,
            // Written by a program; what it cannot be read from says nothing of the rest.
            blocked: serde_json::from_str(&text(row, "blocked")?).unwrap_or_default(),
        })
    })?;
    rows.collect()
}

fn destinations(snapshot: &Connection, now: Millis) -> rusqlite::Result<Vec<DestinationStatus>> {
    let mut destinations = Vec::new();
    let mut statement = snapshot.prepare_cached(include_str!("sql/next_destination.sql"))?;
    // The empty name, before all others, stands for no destination.
    let mut name = String::new();
    while let Some(next) = statement.query_row([&name], |row| text(row, 0)).optional()? {
        let status = destination(snapshot, next.clone(), now)?;
        if [status.retry, status.waiting, status.held, status.dead].iter().any(|count| count.value > 0) {
            destinations.push(status);
        }
        name = next;
    }
    Ok(destinations)
}

fn destination(snapshot: &Connection, name: String, now: Millis) -> rusqlite::Result<DestinationStatus> {
    let count = |state: DeliveryState| {
        count(
            snapshot,
            "SELECT 1 FROM outbox_delivery WHERE destination = :name AND state = :state AND sent_at IS NULL",
            named_params! { ":name": name, ":state": state.as_str() },
        )
    };
    let (retry, waiting) = (count(DeliveryState::Retry)?, count(DeliveryState::Waiting)?);
    let (held, dead) = (count(DeliveryState::Held)?, count(DeliveryState::Dead)?);
    let (oldest, last_error) = snapshot
        .prepare_cached(include_str!("sql/destination.sql"))?
        .query_row(named_params! { ":name": name }, |row| {
            Ok((row.get::<_, Option<Millis>>("oldest_created_at")?, optional_text(row, "last_error")?))
        })?;
    Ok(DestinationStatus {
        retry,
        waiting,
        held,
        dead,
        oldest_seconds: oldest.map(|at| seconds(now.saturating_sub(at).max(0))),
        last_error,
        name,
    })
}

fn count_state(snapshot: &Connection, state: DeliveryState) -> rusqlite::Result<CappedCount> {
    count(snapshot, "SELECT 1 FROM outbox_delivery WHERE state = ?1 AND sent_at IS NULL", [state.as_str()])
}

/// Rows of `query`, counted to the cap and one further.
fn count(snapshot: &Connection, query: &str, parameters: impl Params) -> rusqlite::Result<CappedCount> {
    let sql = format!("SELECT count(*) FROM ({query} LIMIT {})", COUNT_CAP + 1);
    let found: i64 = snapshot.prepare_cached(&sql)?.query_row(parameters, |row| row.get(0))?;
    let found = u64::try_from(found).unwrap_or(0);
    Ok(CappedCount { value: found.min(COUNT_CAP), capped: found > COUNT_CAP })
}

fn seconds(millis: Millis) -> f64 {
    // No moment of a calendar has so many milliseconds that a float would lose one.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let millis = millis as f64;
    millis / 1000.0
}
