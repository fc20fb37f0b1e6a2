//! The same promises through a transaction of sqlx.

#![cfg(all(feature = "store", feature = "sqlx"))]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use postbox_core::inbox::{Acceptance, Inbox as _, Place, Succession};
use postbox_postgres::PostgresStore;
use postbox_postgres::consumer::AcceptError;
use postbox_postgres::consumer::sqlx::{accept, accept_in, accept_placed, accept_placed_in};
use postbox_testkit::postgres::PgCluster;
use sqlx_postgres::PgPool;
use uuid::Uuid;

#[tokio::test]
async fn an_event_is_accepted_with_its_sqlx_transaction() {
    let database = PgCluster::shared().database();
    PostgresStore::connect(&database.url(), None).unwrap().migrate_inbox().await.unwrap();
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let event = Uuid::now_v7();
    let next = Place { event_id: Uuid::now_v7(), aggregate_type: "order", aggregate_id: "1", sequence: 1 };
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(accept(&mut tx, "billing", &event).await.unwrap(), Acceptance::First);
    tx.rollback().await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(accept(&mut tx, "billing", &event).await.unwrap(), Acceptance::First);
    assert_eq!(accept_in("public", &mut tx, "billing", &event).await.unwrap(), Acceptance::Duplicate);
    assert_eq!(accept_placed(&mut tx, "billing", &next).await.unwrap(), Succession::Next);
    let again = accept_placed_in("public", &mut tx, "billing", &next).await.unwrap();
    assert_eq!(again, Succession::Duplicate);
    tx.commit().await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let error = accept_in("nowhere", &mut tx, "billing", &event).await.unwrap_err();
    assert!(matches!(error, AcceptError::SchemaMissing(_)), "{error:?}");
}
