//! Hearing of new events before the next poll.
#![cfg(feature = "store")]
#![expect(clippy::unwrap_used, reason = "a panic is the failing assertion")]

use std::sync::Arc;

use postbox_core::operations::Operations as _;
use postbox_core::store::{StoreError, StoreErrorKind};
use postbox_core::wake_up::{Heard, WakeUp as _};
use postbox_postgres::{NotifyWakeUp, PostgresStore};
use postbox_testkit::postgres::{Database, PgCluster};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

const EVENT: &str = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
                     VALUES ('order', '42', 'order.confirmed', '{}')";

async fn migrated(database: &Database<'_>) -> PostgresStore {
    let store = PostgresStore::connect(&database.url(), None).unwrap();
    store.migrate().await.unwrap();
    store
}

/// A listener in a task of its own, and what it hears.
fn listen(database: &Database<'_>) -> (UnboundedReceiver<Heard>, JoinHandle<StoreError>) {
    let wake_up = Arc::new(NotifyWakeUp::new(&database.url(), None).unwrap());
    let (said, heard) = unbounded_channel();
    let hear = move |what| {
        let _ = said.send(what);
    };
    let listening = tokio::spawn(async move { wake_up.listen(&hear).await });
    (heard, listening)
}

async fn until_listening(heard: &mut UnboundedReceiver<Heard>) {
    assert_eq!(heard.recv().await, Some(Heard::News), "its own");
    assert_eq!(heard.recv().await, Some(Heard::Listening));
}

#[tokio::test]
async fn a_commit_is_heard_of_and_a_rollback_is_not() {
    let database = PgCluster::shared().database();
    migrated(&database).await.announce_events(true).await.unwrap();
    let (mut heard, listening) = listen(&database);
    until_listening(&mut heard).await;
    database.sql(&format!("BEGIN; {EVENT}; ROLLBACK"));
    database.sql(EVENT);
    assert_eq!(heard.recv().await, Some(Heard::News));
    // Notifications come in the order of commits: had the rollback been heard of, it would be first here.
    database.sql(&format!("BEGIN; {EVENT}; {EVENT}; COMMIT"));
    assert_eq!(heard.recv().await, Some(Heard::News));
    assert!(heard.try_recv().is_err(), "one transaction was announced twice");
    listening.abort();
}

#[tokio::test]
async fn a_listener_whose_session_ends_says_so() {
    let database = PgCluster::shared().database();
    migrated(&database).await.announce_events(true).await.unwrap();
    let (mut heard, listening) = listen(&database);
    until_listening(&mut heard).await;
    database.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'postbox'",
    );
    assert_eq!(listening.await.unwrap().kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn without_announcements_a_listener_says_what_to_do() {
    let database = PgCluster::shared().database();
    let store = migrated(&database).await;
    let (_heard, listening) = listen(&database);
    let error = listening.await.unwrap();
    assert_eq!(error.kind, StoreErrorKind::SchemaMissing);
    assert!(error.message.contains("postbox migrate --notify on"), "{error}");
    store.announce_events(true).await.unwrap();
    store.announce_events(true).await.unwrap();
    store.announce_events(false).await.unwrap();
    let (_heard, listening) = listen(&database);
    assert_eq!(listening.await.unwrap().kind, StoreErrorKind::SchemaMissing);
}
