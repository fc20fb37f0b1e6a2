//! Destinations kept as data: what the relay reads of them, and what an operator does with them.

use std::time::Duration;

use postbox_core::delivery::DestinationName;
use postbox_core::endpoint::{
    Endpoint, EndpointRecord, EndpointSecret, EndpointSet, MAX_SECRETS, SecretRecord, Settings,
};
use postbox_core::event::{LaneId, OutboxId};
use postbox_core::store::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, named_params};

use super::clock;
use super::event::{optional_text, text};
use super::failure::Attempt;
use super::heads::TouchedLanes;

/// Everything, in one snapshot, unless its version is `known`.
pub(crate) fn read(connection: &mut Connection, known: i64) -> Attempt<Option<EndpointSet>> {
    let snapshot = connection.transaction()?;
    let version = version(&snapshot)?;
    if version == known {
        return Ok(None);
    }
    let now = clock::now(&snapshot)?;
    let mut endpoints = Vec::new();
    for record in records(&snapshot, None)? {
        let mut statement = snapshot.prepare_cached(include_str!("sql/endpoint_secrets.sql"))?;
        let secrets = statement.query_map(named_params! { ":name": record.name, ":now": now }, |row| {
            Ok(EndpointSecret {
                text: text(row, "secret")?,
                expires_at: clock::optional_timestamp(row, "expires_at")?,
            })
        })?;
        let secrets: Vec<EndpointSecret> = secrets.take(MAX_SECRETS).collect::<rusqlite::Result<_>>()?;
        let no_reason = || "no reason was given".to_owned();
        endpoints.push(Endpoint {
            settings: Settings::read(record.settings.as_deref()),
            secrets_expired: secrets.is_empty() && has_secrets(&snapshot, &record.name)?,
            secrets,
            disabled: record.disabled_at.map(|_| record.disabled_reason.unwrap_or_else(no_reason)),
            name: record.name.into(),
        });
    }
    Ok(Some(EndpointSet { version, endpoints }))
}

/// Every row, or the one of this name.
pub(crate) fn list(connection: &mut Connection, name: Option<&str>) -> Attempt<Vec<EndpointRecord>> {
    let snapshot = connection.transaction()?;
    let now = clock::now(&snapshot)?;
    let mut found = records(&snapshot, name)?;
    for record in &mut found {
        let mut statement = snapshot.prepare_cached(include_str!("sql/endpoint_secrets.sql"))?;
        let secrets = statement.query_map(named_params! { ":name": record.name, ":now": now }, |row| {
            Ok(SecretRecord {
                created_at: clock::timestamp(row, "created_at")?,
                expires_at: clock::optional_timestamp(row, "expires_at")?,
            })
        })?;
        record.secrets = secrets.collect::<rusqlite::Result<_>>()?;
    }
    Ok(found)
}

/// Adds an endpoint with its first secret; `false` when there is one of that name.
pub(crate) fn add(
    connection: &mut Connection,
    name: &str,
    settings: &str,
    secret: Option<&str>,
) -> Attempt<bool> {
    let transaction = write(connection)?;
    let added = transaction.execute(
        "INSERT INTO outbox_destination (name, settings) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        (name, settings),
    )?;
    if added > 0
        && let Some(secret) = secret
    {
        insert_secret(&transaction, name, secret)?;
    }
    transaction.commit()?;
    Ok(added > 0)
}

/// Replaces settings that are still as they were read.
pub(crate) fn change(connection: &mut Connection, name: &str, seen: &str, settings: &str) -> Attempt<bool> {
    let changed = connection.execute(
        "UPDATE outbox_destination SET settings = ?3 WHERE name = ?1 AND settings = ?2",
        (name, seen, settings),
    )?;
    Ok(changed > 0)
}

/// Switches a destination off; `false` when it was.
pub(crate) fn disable(connection: &mut Connection, name: &str, reason: &str) -> Attempt<bool> {
    let transaction = write(connection)?;
    let now = clock::now(&transaction)?;
    let changed = transaction.execute(
        include_str!("sql/disable_endpoint.sql"),
        named_params! { ":name": name, ":reason": reason, ":now": now },
    )?;
    transaction.commit()?;
    Ok(changed > 0)
}

/// Switches a destination on; `false` when it was. A row that was only a switch goes.
pub(crate) fn enable(connection: &mut Connection, name: &str) -> Attempt<bool> {
    let transaction = write(connection)?;
    let removed = transaction.execute(
        "DELETE FROM outbox_destination WHERE name = ?1 AND settings IS NULL AND disabled_at IS NOT NULL",
        [name],
    )?;
    let changed = transaction.execute(
        "UPDATE outbox_destination SET disabled_at = NULL, disabled_reason = NULL
         WHERE name = ?1 AND disabled_at IS NOT NULL",
        [name],
    )?;
    transaction.commit()?;
    Ok(removed + changed > 0)
}

/// Adds a secret and lets the earlier ones expire; `false` when there is no endpoint of that name.
pub(crate) fn add_secret(
    connection: &mut Connection,
    name: &str,
    secret: &str,
    keep: Duration,
) -> Attempt<bool> {
    let transaction = write(connection)?;
    let now = clock::now(&transaction)?;
    transaction.execute(
        "DELETE FROM outbox_destination_secret WHERE destination = ?1 AND expires_at <= ?2",
        (name, now),
    )?;
    let exists = transaction
        .query_row("SELECT 1 FROM outbox_destination WHERE name = ?1", [name], |_| Ok(()))
        .optional()?;
    if exists.is_none() {
        return Ok(false);
    }
    let ends = clock::after(now, keep);
    let in_use: u32 = transaction.query_row(
        "SELECT count(*) FROM outbox_destination_secret WHERE destination = ?1 AND ?2 > ?3",
        (name, ends, now),
        |row| row.get(0),
    )?;
    if in_use as usize >= MAX_SECRETS {
        let told = format!(
            "{name:?} has {MAX_SECRETS} secrets in use already: wait until one expires, or replace all of them at once"
        );
        return Err(StoreError::new(StoreErrorKind::Input, told).into());
    }
    transaction.execute(
        "UPDATE outbox_destination_secret SET expires_at = ?2
         WHERE destination = ?1 AND (expires_at IS NULL OR expires_at > ?2)",
        (name, ends),
    )?;
    insert_secret(&transaction, name, secret)?;
    transaction.commit()?;
    Ok(true)
}

/// Removes a row with its secrets. The version since which it is gone.
pub(crate) fn remove(connection: &mut Connection, name: &str) -> Attempt<Option<i64>> {
    let transaction = write(connection)?;
    let removed = transaction.execute("DELETE FROM outbox_destination WHERE name = ?1", [name])?;
    let version = version(&transaction)?;
    transaction.commit()?;
    Ok((removed > 0).then_some(version))
}

/// Discards one batch of what is kept for a destination that was removed.
pub(crate) fn discard_removed(
    connection: &mut Connection,
    destination: &str,
    reason: &str,
    limit: u32,
) -> Attempt<u64> {
    let transaction = write(connection)?;
    let targets: Vec<(OutboxId, LaneId)> = transaction
        .prepare_cached(include_str!("sql/of_removed.sql"))?
        .query_map(named_params! { ":destination": destination, ":limit": limit }, |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let name: DestinationName = destination.into();
    let mut touched = TouchedLanes::default();
    for &(id, lane_id) in &targets {
        transaction
            .prepare_cached(include_str!("sql/discard_removed.sql"))?
            .execute(named_params! { ":id": id, ":destination": destination, ":reason": reason })?;
        touched.insert(lane_id, &name);
    }
    touched.restore_heads(&transaction, clock::now(&transaction)?)?;
    transaction.commit()?;
    Ok(targets.len() as u64)
}

fn write(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT version FROM outbox_destination_version", [], |row| row.get(0))
}

fn has_secrets(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM outbox_destination_secret WHERE destination = ?1")?
        .exists([name])
}

fn insert_secret(transaction: &Connection, name: &str, secret: &str) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO outbox_destination_secret (destination, secret) VALUES (?1, ?2)",
        (name, secret),
    )?;
    Ok(())
}

/// Rows without their secrets.
fn records(snapshot: &Connection, name: Option<&str>) -> rusqlite::Result<Vec<EndpointRecord>> {
    let mut statement = snapshot.prepare_cached(include_str!("sql/endpoints.sql"))?;
    let rows = statement.query_map(named_params! { ":name": name }, record)?;
    rows.collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<EndpointRecord> {
    Ok(EndpointRecord {
        name: text(row, "name")?,
        settings: optional_text(row, "settings")?,
        disabled_at: clock::optional_timestamp(row, "disabled_at")?,
        disabled_reason: optional_text(row, "disabled_reason")?,
        created_at: clock::timestamp(row, "created_at")?,
        updated_at: clock::timestamp(row, "updated_at")?,
        secrets: Vec::new(),
    })
}
