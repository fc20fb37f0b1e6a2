//! Fault 1: rows are claimed, so two workers share an aggregate.

use std::time::Duration;

use postbox_bench::naive::Settings;
use postbox_testkit::receiver::{Answer, Script};

use crate::scene::{Events, LEASE, Postbox, Reference, eager};

/// 6,000 events, the twelve of an aggregate one after the other.
const EVENTS: Events = Events { aggregates: 500, each: 12, together: true };

/// The receiver works 2 ms on each request, so that requests overlap as they do in life.
fn script() -> Script {
    Script::always(Answer::After(Duration::from_millis(2), Box::new(Answer::Ok)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_that_claim_rows_reorder_aggregates_and_two_relays_do_not() {
    // Sorted, so that what is out of order is so because there are two of them.
    let reordered = |batch| async move {
        let reference = Reference::set(script()).await;
        reference.write(EVENTS).await;
        reference.work(2, Settings { batch, sorted: true, ..Settings::default() }).await;
        let ledger = reference.0.ledger().await;
        assert_eq!(ledger.delivered, 6_000);
        ledger.order_violations.len()
    };
    let (small, usual, large) = tokio::join!(reordered(10), reordered(50), reordered(200));

    let postbox = Postbox::set(script()).await;
    let relays = postbox.relays(2, LEASE, &eager()).await;
    postbox.write(EVENTS).await;
    postbox.drained().await;
    relays.stop().await;
    let ledger = postbox.outbox.ledger().await;

    println!(
        "1, out of order: reference {small} (batch of 10), {usual} (50), {large} (200); Postbox {}",
        ledger.order_violations.len()
    );
    assert!(small >= 10 && usual >= 10 && large >= 1, "the reference shows the fault");
    assert!(ledger.adds_up(), "{ledger:?}");
    assert_eq!((ledger.delivered, ledger.requests), (6_000, 6_000));
}
