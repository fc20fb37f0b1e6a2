//! The PostgreSQL store keeps every sentence of the contracts `Store` and `Operations`.

#![cfg(all(feature = "store", feature = "tokio-postgres"))]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postbox_core::event::NewEvent;
use postbox_core::operations::Operations;
use postbox_core::reports::Reports;
use postbox_core::store::Store;
use postbox_postgres::PostgresStore;
use postbox_postgres::producer::tokio_postgres::enqueue;
use postbox_testkit::postgres::{Database, PgCluster};
use postbox_testkit::store_conformance::{OpenTransaction, StoreHarness};
use tokio_postgres::{Client, NoTls};

postbox_testkit::store_conformance!(fresh_database);

struct Fresh(Database<'static>);

async fn fresh_database() -> Fresh {
    let database = PgCluster::shared().database();
    PostgresStore::connect(&database.url(), None).unwrap().migrate().await.unwrap();
    Fresh(database)
}

impl Fresh {
    fn open(&self) -> Arc<PostgresStore> {
        Arc::new(PostgresStore::connect(&self.0.url(), None).unwrap())
    }

    async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.0.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

#[async_trait]
impl StoreHarness for Fresh {
    async fn store(&self) -> Arc<dyn Store> {
        self.open()
    }

    async fn operations(&self) -> Arc<dyn Operations> {
        self.open()
    }

    async fn reports(&self) -> Arc<dyn Reports> {
        self.open()
    }

    async fn commit(&self, events: &[NewEvent]) -> Result<(), String> {
        let mut client = self.client().await;
        let mut tx = client.transaction().await.unwrap();
        for event in events {
            enqueue(&mut tx, event).await.map_err(|error| error.to_string())?;
        }
        tx.commit().await.map_err(|error| error.to_string())
    }

    async fn roll_back(&self, events: &[NewEvent]) {
        let mut client = self.client().await;
        let mut tx = client.transaction().await.unwrap();
        for event in events {
            enqueue(&mut tx, event).await.unwrap();
        }
        tx.rollback().await.unwrap();
    }

    async fn begin(&self, events: &[NewEvent]) -> Option<Box<dyn OpenTransaction>> {
        let mut client = self.client().await;
        let mut tx = client.transaction().await.unwrap();
        for event in events {
            enqueue(&mut tx, event).await.unwrap();
        }
        // Dropping it would roll back; forgotten, it stays open on the client, which outlives it.
        std::mem::forget(tx);
        Some(Box::new(Open(client)))
    }

    async fn sql(&self, statements: &str) {
        self.0.sql(statements);
    }

    async fn pass_time(&self, duration: Duration) {
        let by = format!("interval '{} milliseconds'", duration.as_millis());
        self.0.sql(&format!(
            "UPDATE outbox_report SET received_at = received_at - {by};
             UPDATE outbox SET created_at = created_at - {by}, deliver_after = deliver_after - {by},
                 expires_at = expires_at - {by};
             UPDATE outbox_delivery SET next_attempt_at = next_attempt_at - {by}, sent_at = sent_at - {by};
             UPDATE outbox_relay SET leased_until = leased_until - {by}, started_at = started_at - {by};
             UPDATE outbox_shard SET taken_at = taken_at - {by};
             UPDATE outbox_destination SET disabled_at = disabled_at - {by}, created_at = created_at - {by};
             UPDATE outbox_destination_secret
             SET created_at = created_at - {by}, expires_at = expires_at - {by};"
        ));
    }
}

struct Open(Client);

#[async_trait]
impl OpenTransaction for Open {
    async fn commit(self: Box<Self>) {
        self.0.batch_execute("COMMIT").await.unwrap();
    }

    async fn roll_back(self: Box<Self>) {
        self.0.batch_execute("ROLLBACK").await.unwrap();
    }
}
