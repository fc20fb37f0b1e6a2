//! The same promises through a transaction of sqlx.

#![cfg(all(feature = "store", feature = "sqlx"))]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

mod shop;

use jiff::{Timestamp, ToSpan as _};
use postbox_core::event::NewEvent;
use postbox_postgres::producer::EnqueueError;
use postbox_postgres::producer::sqlx::{enqueue, enqueue_in};
use shop::Shop;
use sqlx_postgres::PgPool;
use uuid::Uuid;

fn confirmed(order: &str) -> NewEvent {
    NewEvent::new("order", order, "order.confirmed", &serde_json::json!({ "order": order })).unwrap()
}

#[tokio::test]
async fn an_event_shares_the_fate_of_its_sqlx_transaction() {
    let shop = Shop::open().await;
    let pool = PgPool::connect(&shop.database.url()).await.unwrap();
    let soon = Timestamp::now() + 1.hour();
    let full = NewEvent {
        event_id: Some(Uuid::now_v7()),
        aggregate_seq: Some(1),
        headers: Some(serde_json::value::to_raw_value(&serde_json::json!({ "tenant": "acme" })).unwrap()),
        deliver_after: Some(soon),
        expires_at: Some(soon + 1.hour()),
        ..confirmed("kept")
    };
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(enqueue(&mut tx, &full).await.unwrap(), full.event_id.unwrap());
    tx.commit().await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    enqueue_in("public", &mut tx, &confirmed("dropped")).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(
        shop.database.sql(
            "SELECT aggregate_id, aggregate_seq, headers ->> 'tenant', expires_at - deliver_after FROM outbox"
        ),
        "kept|1|acme|01:00:00"
    );
    shop.assert_todo_is_complete();
}

#[tokio::test]
async fn a_refusal_and_a_missing_table_are_told_apart() {
    let shop = Shop::open().await;
    let pool = PgPool::connect(&shop.database.url()).await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let error = enqueue(&mut tx, &confirmed("")).await.unwrap_err();
    assert!(
        matches!(&error, EnqueueError::Refused { rule: Some(rule), .. } if rule == "outbox_aggregate_id_empty"),
        "{error:?}"
    );
    drop(tx);
    let mut tx = pool.begin().await.unwrap();
    let error = enqueue_in("nowhere", &mut tx, &confirmed("1")).await.unwrap_err();
    assert!(matches!(error, EnqueueError::SchemaMissing(_)), "{error:?}");
}
