//! The SQLite store keeps every sentence of the contracts `Store` and `Operations`.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postbox_core::event::NewEvent;
use postbox_core::operations::Operations;
use postbox_core::reports::Reports;
use postbox_core::store::Store;
use postbox_sqlite::{SqliteStore, enqueue, migrate};
use postbox_testkit::store_conformance::{OpenTransaction, StoreHarness};
use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;

postbox_testkit::store_conformance!(fresh_database);

struct Database {
    directory: TempDir,
}

async fn fresh_database() -> Database {
    let database = Database { directory: TempDir::new().unwrap() };
    migrate(&mut database.connect()).unwrap();
    database
}

impl Database {
    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("shop.db")
    }

    fn connect(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    fn write(&self, events: &[NewEvent], commit: bool) -> Result<(), String> {
        let mut connection = self.connect();
        let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        for event in events {
            enqueue(&mut transaction, event).map_err(|error| error.to_string())?;
        }
        if commit { transaction.commit() } else { transaction.rollback() }.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl StoreHarness for Database {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(self.path()).unwrap())
    }

    async fn operations(&self) -> Arc<dyn Operations> {
        Arc::new(SqliteStore::open(self.path()).unwrap())
    }

    async fn reports(&self) -> Arc<dyn Reports> {
        Arc::new(SqliteStore::open(self.path()).unwrap())
    }

    async fn commit(&self, events: &[NewEvent]) -> Result<(), String> {
        self.write(events, true)
    }

    async fn roll_back(&self, events: &[NewEvent]) {
        self.write(events, false).unwrap();
    }

    /// SQLite lets one transaction write at a time: nothing can overtake it.
    async fn begin(&self, _events: &[NewEvent]) -> Option<Box<dyn OpenTransaction>> {
        None
    }

    async fn sql(&self, statements: &str) {
        self.connect().execute_batch(statements).unwrap();
    }

    async fn pass_time(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap();
        self.connect()
            .execute_batch(&format!(
                "UPDATE outbox_report SET received_at = received_at - {millis};
                 UPDATE outbox SET created_at = created_at - {millis}, deliver_after = deliver_after - {millis},
                     expires_at = expires_at - {millis};
                 UPDATE outbox_delivery
                 SET next_attempt_at = next_attempt_at - {millis}, sent_at = sent_at - {millis};
                 UPDATE outbox_relay
                 SET leased_until = leased_until - {millis}, started_at = started_at - {millis};
                 UPDATE outbox_shard SET taken_at = taken_at - {millis};
                 UPDATE outbox_destination
                 SET disabled_at = disabled_at - {millis}, created_at = created_at - {millis};
                 UPDATE outbox_destination_secret
                 SET created_at = created_at - {millis}, expires_at = expires_at - {millis};"
            ))
            .unwrap();
    }
}
