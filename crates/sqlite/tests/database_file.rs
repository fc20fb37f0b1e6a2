//! The file itself: creating it, sharing it, and saying what is wrong with it.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use std::path::Path;
use std::sync::mpsc;

use postbox_core::lease::Heartbeat;
use postbox_core::operations::Operations;
use postbox_core::store::{ScanRequest, ShardScan, Store, StoreError, StoreErrorKind};
use postbox_sqlite::{SqliteStore, migrate};
use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;
use uuid::Uuid;

fn store(path: impl AsRef<Path>) -> SqliteStore {
    SqliteStore::open(path.as_ref()).unwrap()
}

fn whole_scan() -> ScanRequest {
    ScanRequest {
        shards: (0..64).map(|shard| ShardScan { shard, floor: 0, cursor: 0 }).collect(),
        rows_per_shard: 100,
        rows_per_lane: 100,
        saturated: Vec::new(),
    }
}

fn assert_says(error: &StoreError, kind: StoreErrorKind, hint: &str) {
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.message.contains(hint), "{error}");
}

#[tokio::test]
async fn migrating_creates_the_file_in_wal_mode() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    assert_eq!(store(&path).migrate().await.unwrap(), [1, 2, 3, 4]);
    assert!(store(&path).migrate().await.unwrap().is_empty());
    let mode: String =
        Connection::open(&path).unwrap().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    store(&path).check_schema().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_migrations_at_once_one_applies_each_version() {
    let directory = TempDir::new().unwrap();
    let stores: Vec<SqliteStore> = (0..8).map(|_| store(directory.path().join("shop.db"))).collect();
    let applied = futures_util::future::join_all(stores.iter().map(SqliteStore::migrate)).await;
    let mut versions: Vec<u32> = applied.into_iter().flat_map(Result::unwrap).collect();
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_missing_file_is_not_created_by_a_relay() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    let error = store(&path).check_schema().await.unwrap_err();
    assert_says(
        &error,
        StoreErrorKind::SchemaMissing,
        "does not exist: correct the path, or run `postbox migrate`",
    );
    assert!(!path.exists());
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said_with_its_name() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();

    let error = store(here.join("nowhere/shop.db")).migrate().await.unwrap_err();
    assert_says(&error, StoreErrorKind::Input, "nowhere does not exist");
    let error = store(here).migrate().await.unwrap_err();
    assert_says(&error, StoreErrorKind::Input, "is a directory");

    std::fs::write(here.join("notes.txt"), "Not a database at all, but longer than its header. ".repeat(50))
        .unwrap();
    let error = store(here.join("notes.txt")).check_schema().await.unwrap_err();
    assert_says(&error, StoreErrorKind::Input, "notes.txt: the file is not a SQLite database");

    Connection::open(here.join("other.db")).unwrap().execute_batch("CREATE TABLE orders (id)").unwrap();
    let error = store(here.join("other.db")).check_schema().await.unwrap_err();
    assert_says(&error, StoreErrorKind::SchemaMissing, "has no outbox tables");
    let error = store(here.join("other.db")).scan(&whole_scan()).await.unwrap_err();
    assert_says(&error, StoreErrorKind::SchemaMissing, "run `postbox migrate`");
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    let mut connection = Connection::open(&path).unwrap();
    migrate(&mut connection).unwrap();
    connection.execute("INSERT INTO outbox_migration (version) VALUES (900)", []).unwrap();
    let store = store(&path);
    assert_says(&store.check_schema().await.unwrap_err(), StoreErrorKind::SchemaNewer, "version 900");
    assert_says(&store.migrate().await.unwrap_err(), StoreErrorKind::SchemaNewer, "version 900");
}

#[tokio::test]
async fn a_relay_sees_what_another_program_commits_and_nothing_before() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    let store = store(&path);
    store.migrate().await.unwrap();
    let producer = Connection::open(&path).unwrap();
    producer
        .execute_batch(
            "BEGIN;
             INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', '7', 'order.confirmed', '{}');",
        )
        .unwrap();
    assert!(store.scan(&whole_scan()).await.unwrap().rows.is_empty());
    producer.execute_batch("COMMIT").unwrap();
    let scan = store.scan(&whole_scan()).await.unwrap();
    assert_eq!(scan.rows.len(), 1);
    assert_eq!(scan.rows[0].arrival.as_ref().unwrap().event.aggregate_id, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_for_another_programs_transaction_and_reads_do_not() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    let store = store(&path);
    store.migrate().await.unwrap();
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut connection = Connection::open(path).unwrap();
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
            begun.send(()).unwrap();
            may_end.recv().unwrap();
            transaction.commit().unwrap();
        }
    });
    has_begun.recv().unwrap();
    let heartbeat = Heartbeat::new(Uuid::now_v7(), "test:1", std::time::Duration::from_secs(60));
    let mut joining = std::pin::pin!(store.heartbeat(&heartbeat, false));
    assert!(futures_util::poll!(&mut joining).is_pending());
    store.scan(&whole_scan()).await.unwrap();
    store.status().await.unwrap();
    assert!(futures_util::poll!(&mut joining).is_pending(), "the other transaction is still open");
    end.send(()).unwrap();
    joining.await.unwrap();
    writer.join().unwrap();
}

#[tokio::test]
async fn text_that_is_no_utf8_stops_nobody() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    let store = store(&path);
    store.migrate().await.unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES
             ('order', CAST(x'37ff' AS TEXT), 'order.confirmed', CAST(x'22ff22' AS TEXT)),
             ('order', '8', 'order.confirmed', '{}')",
        )
        .unwrap();
    let scan = store.scan(&whole_scan()).await.unwrap();
    assert_eq!(scan.rows.len(), 2);
    assert!(scan.rows.iter().all(|row| row.arrival.is_some()));
}

#[test]
fn a_database_in_memory_is_refused() {
    assert_says(&SqliteStore::open(":memory:").unwrap_err(), StoreErrorKind::Input, "name a file");
    assert_says(&SqliteStore::open("").unwrap_err(), StoreErrorKind::Input, "names no file");
}
