//! Fault 9: threads share a connection, and with it its transaction.

use std::time::Duration;

use postbox_bench::naive::Settings;
use postbox_testkit::receiver::{Answer, Script};

use crate::scene::{Events, Postbox, Reference, eager};

/// One event for each of eight threads.
const EVENTS: Events = Events { aggregates: 8, each: 1, together: true };

/// Refuses one of them, after a while in which all others are marked.
fn script() -> Script {
    Script::each(|request| match request.aggregate.as_ref().unwrap().1.as_str() {
        "order-000" => Answer::After(Duration::from_millis(250), Box::new(Answer::Status(500))),
        _ => Answer::Ok,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_failure_takes_back_the_marks_of_all_threads_on_its_connection_and_no_receipt_of_a_relay() {
    let reference = Reference::set(script()).await;
    reference.write(EVENTS).await;
    let mut pool = reference.pool(8, Settings { lease: Duration::ZERO, ..Settings::default() }).await;
    let sent = pool.work_batch().await.unwrap().sent;
    assert_eq!(sent, 7);
    let marked = reference.0.number("SELECT count(*) FROM naive_outbox WHERE status = 'sent'").await;
    while reference.pending().await > 0 {
        pool.work_batch().await.unwrap();
    }
    let naive = reference.0.ledger().await;

    let postbox = Postbox::set(script()).await;
    postbox.write(EVENTS).await;
    postbox.drain(&eager()).await;
    let ours = postbox.outbox.ledger().await;
    let receipts = "SELECT count(*) FROM outbox_delivery WHERE state = 'delivered'";
    let receipts = postbox.outbox.number(receipts).await;

    println!(
        "9, marked of 7 that were delivered: reference {marked}, Postbox {receipts}; delivered again: \
         reference {}, Postbox {}",
        naive.repeated, ours.repeated
    );
    assert!(marked < 7 && naive.repeated >= 7, "the reference shows the fault");
    assert_eq!((receipts, ours.repeated), (7, 0));
}
