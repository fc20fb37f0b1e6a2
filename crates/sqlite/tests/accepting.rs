//! The inbox: an event takes effect once, whatever is repeated and whoever comes at the same time.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use std::path::Path;
use std::time::Duration;

use postbox_core::inbox::{Acceptance, Inbox as _, Place, Succession};
use postbox_core::store::{Store as _, StoreErrorKind};
use postbox_sqlite::{AcceptError, SqliteStore, accept, accept_placed, migrate_inbox};
use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;
use uuid::Uuid;

/// A consumer's own file: an inbox, a table of invoices, and no outbox.
fn billing(directory: &TempDir) -> std::path::PathBuf {
    let path = directory.path().join("billing.db");
    let mut connection = open(&path);
    migrate_inbox(&mut connection).unwrap();
    connection.execute_batch("CREATE TABLE invoice (event_id TEXT NOT NULL)").unwrap();
    path
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection
}

/// One attempt to act on `event` in a transaction of its own.
fn receive(connection: &mut Connection, event: &Uuid, commit: bool) -> Acceptance {
    let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let acceptance = accept(&mut tx, "billing", event).unwrap();
    if acceptance == Acceptance::First {
        tx.execute("INSERT INTO invoice VALUES (?1)", [event.to_string()]).unwrap();
    }
    if commit {
        tx.commit().unwrap()
    } else {
        tx.rollback().unwrap()
    }
    acceptance
}

#[test]
fn an_event_is_first_until_a_transaction_that_accepted_it_commits() {
    let directory = TempDir::new().unwrap();
    let mut connection = open(&billing(&directory));
    let event = Uuid::now_v7();
    assert_eq!(receive(&mut connection, &event, false), Acceptance::First);
    assert_eq!(receive(&mut connection, &event, true), Acceptance::First);
    assert_eq!(receive(&mut connection, &event, true), Acceptance::Duplicate);
    let mut tx = connection.transaction().unwrap();
    assert_eq!(accept(&mut tx, "shipping", &event).unwrap(), Acceptance::First, "another consumer");
}

#[test]
fn of_many_at_once_exactly_one_acts() {
    let directory = TempDir::new().unwrap();
    let path = billing(&directory);
    let events: Vec<Uuid> = (0..40).map(|_| Uuid::now_v7()).collect();
    std::thread::scope(|scope| {
        for racer in 0..8 {
            let (path, events) = (&path, &events);
            scope.spawn(move || {
                let mut connection = open(path);
                for (index, event) in events.iter().enumerate() {
                    // Some of those who come first give up.
                    let _ = receive(&mut connection, event, (index + racer) % 4 != 0);
                }
            });
        }
    });
    let acted = "SELECT count(*), count(DISTINCT event_id) FROM invoice";
    let acted: (i64, i64) = open(&path).query_row(acted, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(acted, (40, 40));
}

#[test]
fn a_deferred_transaction_that_read_before_is_told_to_retry() {
    let directory = TempDir::new().unwrap();
    let path = billing(&directory);
    let (mut old, mut new) = (open(&path), open(&path));
    let event = Uuid::now_v7();
    let mut tx = old.transaction().unwrap();
    tx.query_row("SELECT count(*) FROM invoice", [], |_| Ok(())).unwrap();
    assert_eq!(receive(&mut new, &event, true), Acceptance::First);
    let error = accept(&mut tx, "billing", &event).unwrap_err();
    assert!(matches!(error, AcceptError::Conflict(_)), "{error:?}");
    tx.rollback().unwrap();
    assert_eq!(receive(&mut old, &event, true), Acceptance::Duplicate);
}

#[test]
fn a_consumer_can_tell_what_follows_on_from_gaps_repeats_and_stragglers() {
    let directory = TempDir::new().unwrap();
    let mut connection = open(&billing(&directory));
    let mut tx = connection.transaction().unwrap();
    let ids: Vec<Uuid> = (0..5).map(|_| Uuid::now_v7()).collect();
    for (event, sequence, expected) in [
        (0, 1, Succession::Next),
        (1, 2, Succession::Next),
        (1, 2, Succession::Duplicate),
        (3, 4, Succession::Gap),
        (2, 3, Succession::Stale),
        (4, 5, Succession::Next),
    ] {
        let place = Place { event_id: ids[event], aggregate_type: "order", aggregate_id: "4711", sequence };
        assert_eq!(accept_placed(&mut tx, "billing", &place).unwrap(), expected, "sequence {sequence}");
    }
    let zero = Place { event_id: Uuid::now_v7(), aggregate_type: "order", aggregate_id: "1", sequence: 0 };
    assert!(matches!(accept_placed(&mut tx, "billing", &zero), Err(AcceptError::Refused { .. })));
}

#[test]
fn what_could_not_be_recognised_again_is_refused() {
    let directory = TempDir::new().unwrap();
    let mut connection = open(&billing(&directory));
    let upper = Uuid::now_v7().to_string().to_uppercase();
    connection.execute("INSERT INTO inbox (consumer, event_id) VALUES ('billing', ?1)", [upper]).unwrap_err();
    let mut tx = connection.transaction().unwrap();
    let error = accept(&mut tx, "", &Uuid::now_v7()).unwrap_err();
    assert!(
        matches!(&error, AcceptError::Refused { reason } if reason.contains("1 to 100 bytes")),
        "{error:?}"
    );
}

#[tokio::test]
async fn old_events_are_forgotten_in_batches_and_what_was_kept_is_remembered() {
    const DAY: Duration = Duration::from_secs(86_400);
    let directory = TempDir::new().unwrap();
    let path = billing(&directory);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.check_schema().await.unwrap_err().kind, StoreErrorKind::SchemaMissing);
    assert_eq!(store.inbox_retention().await.unwrap(), None);
    for days in (0..100).rev() {
        open(&path)
            .execute(
                "INSERT INTO inbox (consumer, event_id, received_at)
                 VALUES ('billing', ?1, (unixepoch('now') - ?2 * 86400) * 1000)",
                (Uuid::now_v7().to_string(), days),
            )
            .unwrap();
    }
    let mut forgotten = Vec::new();
    let (mut after, mut done) = (0, false);
    while !done {
        let step = store.prune_inbox(30 * DAY + DAY / 2, after, 20).await.unwrap();
        forgotten.push(step.changed);
        (after, done) = (step.cursor, step.done);
    }
    assert_eq!(forgotten, [20, 20, 20, 9], "the young ones end it, not the end of the table");
    assert_eq!(store.estimate_received("billing").await.unwrap(), 31);
    let first = store.received("billing", None, 20).await.unwrap();
    let rest = store.received("billing", Some(first[19].event_id), 20).await.unwrap();
    assert_eq!((first.len(), rest.len()), (20, 11));
    assert!(first.iter().chain(&rest).map(|row| row.event_id).is_sorted());
    let retention = store.inbox_retention().await.unwrap().unwrap();
    assert_eq!(retention.keep, 30 * DAY + DAY / 2);
}
