//! Fault 3: `MAX(seq) + 1` gives two writers the same number.

use postbox_bench::naive::{NewRow, Producer};
use postbox_testkit::receiver::{Answer, Script};
use serde_json::value::RawValue;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::scene::{Postbox, Reference};

/// Transactions of each of the two writers.
const TRANSACTIONS: usize = 100;

/// The rest of the business transaction, behind the event and before the commit.
const BUSINESS: &str = "SELECT pg_sleep(0.002)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_writers_of_one_aggregate_abort_each_other_over_max_plus_one_and_queue_for_its_lane() {
    let reference = Reference::set(Script::always(Answer::Ok)).await;
    let (one, two) = (reference.0.connect().await, reference.0.connect().await);
    let (mine, yours) = tokio::join!(write_naively(&one), write_naively(&two));
    let aborted = mine + yours;

    let postbox = Postbox::set(Script::always(Answer::Ok)).await;
    let (one, two) = (postbox.outbox.connect().await, postbox.outbox.connect().await);
    tokio::join!(write(&one), write(&two));
    let gaps = "SELECT max(aggregate_seq) - count(*) FROM outbox";

    println!("3, aborted transactions of {}: reference {aborted}, Postbox 0", 2 * TRANSACTIONS);
    assert!(aborted >= 10, "the reference shows the fault");
    assert_eq!(postbox.outbox.number("SELECT count(*) FROM outbox").await, 200);
    assert_eq!(postbox.outbox.number(gaps).await, 0, "the sequence has no gap");
}

/// Returns how many transactions were aborted.
async fn write_naively(client: &Client) -> usize {
    let producer = Producer::prepare(client).await.unwrap();
    let payload = RawValue::from_string("{}".to_owned()).unwrap();
    let row =
        NewRow { aggregate_type: "order", aggregate_id: "a", event_type: "order.changed", payload: &payload };
    let mut aborted = 0;
    for _ in 0..TRANSACTIONS {
        client.batch_execute("BEGIN").await.unwrap();
        match producer.insert(client, row).await {
            Ok(_) => client.batch_execute(&format!("{BUSINESS}; COMMIT")).await.unwrap(),
            Err(error) => {
                assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
                client.batch_execute("ROLLBACK").await.unwrap();
                aborted += 1;
            }
        }
    }
    aborted
}

/// The same on Postbox, where none may be aborted.
async fn write(client: &Client) {
    for _ in 0..TRANSACTIONS {
        client
            .batch_execute(&format!(
                "BEGIN;
                 INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
                 VALUES ('order', 'a', 'order.changed', '{{}}');
                 {BUSINESS}; COMMIT"
            ))
            .await
            .unwrap();
    }
}
