//! The naive reference does what it is written to do, so that what it fails at is the design's fault and not its own.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is the failing assertion, in the functions beside the tests too"
)]

use std::time::Duration;

use postbox_bench::naive::{self, Batch, NewRow, Order, Post, Producer, Settings, Worker};
use postbox_testkit::postgres::{Database, PgCluster};
use postbox_testkit::receiver::{Answer, Receiver, Script};
use serde_json::value::RawValue;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

async fn connect(database: &Database<'_>) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A database with the naive table.
async fn table() -> Database<'static> {
    let database = PgCluster::shared().database();
    naive::migrate(&connect(&database).await).await.unwrap();
    database
}

async fn insert(
    producer: &Producer,
    client: &Client,
    aggregate_id: &str,
) -> Result<i64, tokio_postgres::Error> {
    let payload = RawValue::from_string(r#"{"total": 1}"#.to_owned()).unwrap();
    let row =
        NewRow { aggregate_type: "order", aggregate_id, event_type: "order.confirmed", payload: &payload };
    producer.insert(client, row).await
}

/// Writes one event of each of these aggregates.
async fn write(database: &Database<'_>, aggregates: &[&str]) {
    let client = connect(database).await;
    let producer = Producer::prepare(&client).await.unwrap();
    for aggregate_id in aggregates {
        insert(&producer, &client, aggregate_id).await.unwrap();
    }
}

async fn worker(database: &Database<'_>, receiver: &Receiver, settings: Settings) -> Worker {
    Worker::prepare(connect(database).await, Post::new(&receiver.url()).unwrap(), settings).await.unwrap()
}

#[tokio::test]
async fn a_worker_sends_every_row_once_over_one_connection_and_marks_it() {
    let database = table().await;
    write(&database, &["a", "a", "b"]).await;
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let settings = Settings { batch: 2, ..Settings::default() };
    let sum = worker(&database, &receiver, settings).await.work_until_empty().await.unwrap();
    assert_eq!(sum, Batch { claimed: 3, sent: 3, ..Batch::default() });
    assert_eq!((receiver.count(), receiver.connections()), (3, 1));
    assert_eq!(database.sql("SELECT count(*) FROM naive_outbox WHERE status = 'sent' AND attempts = 1"), "3");
}

#[tokio::test]
async fn rows_behind_a_failing_one_burn_an_attempt_without_a_request() {
    let database = table().await;
    write(&database, &["a", "a", "a"]).await;
    let receiver = Receiver::start(Script::always(Answer::Status(500))).await;
    let settings = Settings { order: Order::Aggregate, lease: Duration::ZERO, ..Settings::default() };
    let batch = worker(&database, &receiver, settings).await.work_batch().await.unwrap();
    assert_eq!(batch, Batch { claimed: 3, failed: 1, skipped: 2, ..Batch::default() });
    assert_eq!(receiver.count(), 1);
    assert_eq!(database.sql("SELECT sum(attempts) FROM naive_outbox"), "3");
}

#[tokio::test]
async fn two_producers_of_one_aggregate_collide_on_its_sequence() {
    let database = table().await;
    let (first, second) = (connect(&database).await, connect(&database).await);
    let (one, two) = (Producer::prepare(&first).await.unwrap(), Producer::prepare(&second).await.unwrap());
    first.batch_execute("BEGIN").await.unwrap();
    assert_eq!(insert(&one, &first, "a").await.unwrap(), 1);
    let (collision, commit) = tokio::join!(insert(&two, &second, "a"), async {
        // The second waits for the first to decide; only then can it fail.
        while database.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
            tokio::task::yield_now().await;
        }
        first.batch_execute("COMMIT").await
    });
    commit.unwrap();
    assert_eq!(collision.unwrap_err().code(), Some(&SqlState::UNIQUE_VIOLATION));
}
