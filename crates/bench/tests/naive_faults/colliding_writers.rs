//! Fault 3: `MAX(seq) + 1` gives two writers the same number.

use postbox_bench::naive::{NewRow, Producer};
use postbox_testkit::receiver::{Answer, Script};
use serde_json::value::RawValue;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::scene::{Outbox, Postbox, Reference};

/// Pairs of transactions.
const PAIRS: usize = 100;

/// Sessions that wait for another one's transaction.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_writers_of_one_aggregate_abort_each_other_over_max_plus_one_and_queue_for_its_lane() {
    let reference = Reference::set(Script::always(Answer::Ok)).await;
    let naively = aborted(&reference.0, write_naively).await;

    let postbox = Postbox::set(Script::always(Answer::Ok)).await;
    let ours = aborted(&postbox.outbox, write).await;
    let written = postbox.outbox.number("SELECT count(*) FROM outbox").await;
    let last = postbox.outbox.number("SELECT max(aggregate_seq) FROM outbox").await;

    println!("3, aborted transactions of {}: reference {naively}, Postbox {ours}", 2 * PAIRS);
    assert_eq!(naively, PAIRS, "the reference shows the fault");
    assert_eq!(ours, 0);
    assert_eq!((written, last), (200, 200), "the sequence has no gap");
}

/// Runs pairs of transactions of which the second writes before the first commits; returns how many were aborted.
async fn aborted(outbox: &Outbox, write: impl AsyncFn(&Client) -> Result<(), Error>) -> usize {
    let (first, second) = (outbox.connect().await, outbox.connect().await);
    let mut aborted = 0;
    for _ in 0..PAIRS {
        first.batch_execute("BEGIN").await.unwrap();
        second.batch_execute("BEGIN").await.unwrap();
        write(&first).await.unwrap();
        let (written, ()) = tokio::join!(write(&second), async {
            outbox.becomes(WAITING, 1).await;
            first.batch_execute("COMMIT").await.unwrap();
        });
        match written {
            Ok(()) => second.batch_execute("COMMIT").await.unwrap(),
            Err(error) => {
                assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
                second.batch_execute("ROLLBACK").await.unwrap();
                aborted += 1;
            }
        }
    }
    aborted
}

async fn write_naively(client: &Client) -> Result<(), Error> {
    let payload = RawValue::from_string("{}".to_owned()).unwrap();
    let row =
        NewRow { aggregate_type: "order", aggregate_id: "a", event_type: "order.changed", payload: &payload };
    Producer::prepare(client).await?.insert(client, row).await.map(|_| ())
}

async fn write(client: &Client) -> Result<(), Error> {
    client
        .batch_execute(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', 'a', 'order.changed', '{}')",
        )
        .await
}
