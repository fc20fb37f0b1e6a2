//! Leases on shards; see [`postbox_core::lease`] for the protocol.
//!
//! Each call is one write transaction, so relays take turns and see each other's result.

use postbox_core::event::Shard;
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term, fair_share};
use rusqlite::{Connection, TransactionBehavior, named_params};

use super::clock::{self, Millis};
use super::failure::Attempt;

/// Joins or renews, evicts the dead, and takes free shards up to the fair share.
pub(crate) fn heartbeat(
    connection: &mut Connection,
    heartbeat: &Heartbeat,
    joined: bool,
) -> Attempt<LeaseAnswer> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let now = clock::now(&transaction)?;
    let relay = heartbeat.relay.to_string();
    if !renew(&transaction, &relay, heartbeat, now)? {
        if joined {
            return Ok(LeaseAnswer::Evicted);
        }
        join(&transaction, &relay, heartbeat, now)?;
    }
    evict_the_dead(&transaction, now)?;
    let live: u32 = transaction.query_row("SELECT count(*) FROM outbox_relay", [], |row| row.get(0))?;
    let mut terms = terms_of(&transaction, &relay)?;
    if heartbeat.accepting {
        let share = fair_share(live).saturating_sub(terms.len());
        take_free_shards(&transaction, &relay, share, now)?;
        terms = terms_of(&transaction, &relay)?;
    }
    transaction.commit()?;
    Ok(LeaseAnswer::Held { terms, live })
}

/// Frees the shards of those of `terms` that are still the relay's.
pub(crate) fn hand_back(connection: &mut Connection, relay: RelayId, terms: &[Term]) -> Attempt<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let relay = relay.to_string();
    for term in terms {
        transaction.execute(
            "UPDATE outbox_shard SET owner = NULL WHERE shard = :shard AND epoch = :epoch AND owner = :relay",
            named_params! { ":shard": term.shard, ":epoch": term.epoch, ":relay": relay },
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// Frees everything the relay has and forgets it.
pub(crate) fn leave(connection: &mut Connection, relay: RelayId) -> Attempt<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let relay = relay.to_string();
    transaction.execute("UPDATE outbox_shard SET owner = NULL WHERE owner = ?1", [&relay])?;
    transaction.execute("DELETE FROM outbox_relay WHERE relay = ?1", [&relay])?;
    transaction.commit()?;
    Ok(())
}

/// Moves the relay's deadline forward; `false` when it has no row. A row whose deadline has passed is still its own
/// until somebody evicted it.
fn renew(
    transaction: &Connection,
    relay: &str,
    heartbeat: &Heartbeat,
    now: Millis,
) -> rusqlite::Result<bool> {
    let renewed = transaction.execute(
        "UPDATE outbox_relay SET leased_until = :until, in_flight = :in_flight, label = :label,
             destinations_version = :destinations_version, blocked = :blocked
         WHERE relay = :relay",
        named_params! {
            ":relay": relay, ":label": heartbeat.label, ":in_flight": heartbeat.in_flight,
            ":until": clock::after(now, heartbeat.ttl),
            ":destinations_version": heartbeat.destinations_version, ":blocked": blocked(heartbeat),
        },
    )?;
    Ok(renewed > 0)
}

fn join(transaction: &Connection, relay: &str, heartbeat: &Heartbeat, now: Millis) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO outbox_relay (
             relay, label, in_flight, started_at, leased_until, destinations_version, blocked)
         VALUES (:relay, :label, :in_flight, :now, :until, :destinations_version, :blocked)",
        named_params! {
            ":relay": relay, ":label": heartbeat.label, ":in_flight": heartbeat.in_flight, ":now": now,
            ":until": clock::after(now, heartbeat.ttl),
            ":destinations_version": heartbeat.destinations_version, ":blocked": blocked(heartbeat),
        },
    )?;
    Ok(())
}

/// What a heartbeat says of blocked destinations, as it is stored.
fn blocked(heartbeat: &Heartbeat) -> String {
    serde_json::to_string(&heartbeat.blocked).unwrap_or_else(|_| "{}".to_owned())
}

fn evict_the_dead(transaction: &Connection, now: Millis) -> rusqlite::Result<()> {
    let evicted = transaction.execute("DELETE FROM outbox_relay WHERE leased_until < ?1", [now])?;
    if evicted > 0 {
        transaction.execute(
            "UPDATE outbox_shard SET owner = NULL WHERE owner NOT IN (SELECT relay FROM outbox_relay)",
            [],
        )?;
        tracing::info!(relays = evicted, "evicted relays whose lease has run out");
    }
    Ok(())
}

fn take_free_shards(
    transaction: &Connection,
    relay: &str,
    count: usize,
    now: Millis,
) -> rusqlite::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let free: Vec<Shard> = transaction
        .prepare("SELECT shard FROM outbox_shard WHERE owner IS NULL ORDER BY shard")?
        .query_map([], |row| row.get(0))?
        .take(count)
        .collect::<rusqlite::Result<_>>()?;
    for shard in free {
        transaction.execute(
            "UPDATE outbox_shard SET owner = :relay, epoch = epoch + 1, taken_at = :now WHERE shard = :shard",
            named_params! { ":relay": relay, ":now": now, ":shard": shard },
        )?;
    }
    Ok(())
}

fn terms_of(transaction: &Connection, relay: &str) -> rusqlite::Result<Vec<Term>> {
    transaction
        .prepare("SELECT shard, epoch FROM outbox_shard WHERE owner = ?1 ORDER BY shard")?
        .query_map([relay], |row| Ok(Term { shard: row.get(0)?, epoch: row.get(1)? }))?
        .collect()
}
