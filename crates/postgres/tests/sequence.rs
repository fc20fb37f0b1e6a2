//! Sequences are gapless, and ids follow them, whatever producers do at once.

#![cfg(feature = "store")]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

mod shop;

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use futures_util::SinkExt as _;
use postbox_core::operations::{Operations as _, PrunePolicy};
use postbox_testkit::faults::Dice;
use shop::{Shop, connect, refusal};
use tokio_postgres::{Client, Error};

const WRITERS: u64 = 32;
const TRANSACTIONS: u64 = 25;

/// Writes one event of the hot aggregate; a repeated `event_id` writes nothing.
async fn write(client: &Client, event_id: &str) -> Result<(), Error> {
    client
        .batch_execute(&format!(
            "INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
             VALUES ('{event_id}', 'order', 'hot', 'order.changed', '{{}}') ON CONFLICT (event_id) DO NOTHING"
        ))
        .await
}

/// One transaction of a writer: mostly one event, sometimes several, savepoints, repeats, and in the end a rollback.
async fn transact(
    client: &Client,
    isolation: &str,
    dice: &mut Dice,
    known: &mut Vec<String>,
) -> Result<(), Error> {
    client.batch_execute(&format!("BEGIN ISOLATION LEVEL {isolation}")).await?;
    let mut written = Vec::new();
    for _ in 0..=dice.below(3) {
        let event_id = uuid::Uuid::now_v7().to_string();
        match dice.below(4) {
            0 => {
                client.batch_execute("SAVEPOINT doubt").await?;
                write(client, &event_id).await?;
                client.batch_execute("ROLLBACK TO SAVEPOINT doubt").await?;
            }
            1 if !known.is_empty() => write(client, &known[dice.below(known.len())].clone()).await?,
            _ => {
                write(client, &event_id).await?;
                written.push(event_id);
            }
        }
    }
    if dice.happens(25) {
        return client.batch_execute("ROLLBACK").await;
    }
    client.batch_execute("COMMIT").await?;
    known.extend(written);
    Ok(())
}

/// Runs all writers to their end and returns how many events they know to be committed.
async fn write_concurrently(shop: &Shop, isolation: &'static str) -> usize {
    let url: Arc<str> = shop.database.url().into();
    let writers = (0..WRITERS).map(|writer| {
        let url = Arc::clone(&url);
        tokio::spawn(async move {
            let client = connect(&url).await;
            let (mut dice, mut known) = (Dice::new(writer), Vec::new());
            for _ in 0..TRANSACTIONS {
                while let Err(error) = transact(&client, isolation, &mut dice, &mut known).await {
                    let (state, rule, message) = refusal(&error);
                    assert!(
                        matches!(&*state, "40001" | "40P01")
                            || state == "23505" && rule == "outbox_aggregate_seq_key",
                        "not retryable: {state} {rule} {message}"
                    );
                    assert_ne!(isolation, "READ COMMITTED", "{state} {message}");
                    client.batch_execute("ROLLBACK").await.unwrap();
                }
            }
            known.len()
        })
    });
    let mut committed = 0;
    for writer in writers.collect::<Vec<_>>() {
        committed += writer.await.unwrap();
    }
    committed
}

async fn sequences_are_gapless_under_concurrent_writers_in(isolation: &'static str) {
    let shop = Shop::open().await;
    let committed = write_concurrently(&shop, isolation).await;
    let expected: Vec<i64> = (1..=i64::try_from(committed).unwrap()).collect();
    assert!(committed > 100, "the writers wrote only {committed}");
    assert_eq!(shop.sequences("hot"), expected);
    shop.assert_todo_is_complete();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_are_gapless_under_concurrent_writers_in_read_committed() {
    sequences_are_gapless_under_concurrent_writers_in("READ COMMITTED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_are_gapless_under_concurrent_writers_in_repeatable_read() {
    sequences_are_gapless_under_concurrent_writers_in("REPEATABLE READ").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_are_gapless_under_concurrent_writers_in_serializable() {
    sequences_are_gapless_under_concurrent_writers_in("SERIALIZABLE").await;
}

#[tokio::test]
async fn a_stale_snapshot_is_told_to_retry() {
    let shop = Shop::open().await;
    let (old, new) = (shop.client().await, shop.client().await);
    write(&new, &uuid::Uuid::now_v7().to_string()).await.unwrap();
    let enqueue = "SELECT outbox_enqueue('order', 'hot', 'order.changed', '{}')";
    for (statement, state, rule) in [
        (enqueue, "40001", ""),
        (
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', 'hot', 'order.changed', '{}')",
            "23505",
            "outbox_aggregate_seq_key",
        ),
    ] {
        old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM outbox").await.unwrap();
        write(&new, &uuid::Uuid::now_v7().to_string()).await.unwrap();
        let error = old.batch_execute(statement).await.unwrap_err();
        assert_eq!((refusal(&error).0.as_str(), refusal(&error).1.as_str()), (state, rule), "{statement}");
        old.batch_execute("ROLLBACK").await.unwrap();
    }
    old.batch_execute(enqueue).await.unwrap();
    assert_eq!(shop.sequences("hot"), [1, 2, 3, 4]);
}

#[tokio::test]
async fn copy_multi_row_insert_and_two_phase_commit_number_their_events() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    client
        .batch_execute(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             SELECT 'order', 'hot', 'order.changed', '{}' FROM generate_series(1, 10)",
        )
        .await
        .unwrap();
    let copy = "COPY outbox (aggregate_type, aggregate_id, event_type, payload) FROM STDIN";
    let mut rows = Box::pin(client.copy_in(copy).await.unwrap());
    rows.send(Cursor::new("order\thot\torder.imported\t{}\n".repeat(10))).await.unwrap();
    rows.as_mut().finish().await.unwrap();
    client
        .batch_execute(
            "BEGIN;
             INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', 'hot', 'order.prepared', '{}');
             PREPARE TRANSACTION 'shop'",
        )
        .await
        .unwrap();
    assert_eq!(shop.sequences("hot").len(), 20, "prepared is not committed");
    client.batch_execute("COMMIT PREPARED 'shop'").await.unwrap();
    assert_eq!(shop.sequences("hot"), (1..=21).collect::<Vec<_>>());
    shop.assert_todo_is_complete();
}

#[tokio::test]
async fn a_sequence_goes_on_after_everything_was_pruned_beside_writers() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    for round in 0..5 {
        for _ in 0..3 {
            write(&client, &uuid::Uuid::now_v7().to_string()).await.unwrap();
        }
        shop.database.sql("DELETE FROM outbox_pending");
        client.batch_execute("BEGIN").await.unwrap();
        write(&client, &uuid::Uuid::now_v7().to_string()).await.unwrap();
        let now = PrunePolicy { older_than: Duration::ZERO, dead_older_than: Duration::ZERO };
        let (step, committed) =
            tokio::join!(shop.store.prune(&now, 0, 1_000), client.batch_execute("COMMIT"));
        committed.unwrap();
        assert_eq!(step.unwrap().changed, if round == 0 { 3 } else { 4 });
    }
    write(&client, &uuid::Uuid::now_v7().to_string()).await.unwrap();
    assert_eq!(shop.sequences("hot"), [20, 21]);
}
