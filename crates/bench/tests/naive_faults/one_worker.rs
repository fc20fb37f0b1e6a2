//! Fault 2: a single worker overtakes itself.

use std::collections::HashSet;
use std::sync::Mutex;

use postbox_bench::naive::Settings;
use postbox_testkit::receiver::{Answer, Script};

use crate::scene::{Events, Postbox, Reference, eager};

const EVENTS: Events = Events { aggregates: 10, each: 20, together: true };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_worker_sends_a_batch_in_the_order_of_a_hash_table_and_a_relay_in_that_of_the_lanes() {
    let reference = Reference::set(Script::always(Answer::Ok)).await;
    reference.write(EVENTS).await;
    reference.work(1, Settings::default()).await;
    let naive = reference.0.ledger().await;
    assert_eq!(naive.delivered, 200);

    let postbox = Postbox::set(Script::always(Answer::Ok)).await;
    postbox.write(EVENTS).await;
    postbox.drain(&eager()).await;
    let ours = postbox.outbox.ledger().await;

    let reordered = naive.order_violations.len();
    println!("2a, out of order: reference {reordered} of 200, Postbox {}", ours.order_violations.len());
    assert!(reordered >= 10, "the reference shows the fault");
    assert!(ours.adds_up(), "{ours:?}");
    assert_eq!(ours.delivered, 200);
}

/// Refuses the first request for each aggregate's first event.
fn refuses_each_aggregate_once() -> Script {
    let seen = Mutex::new(HashSet::new());
    Script::each(move |request| {
        let first = seen.lock().unwrap().insert(request.aggregate.clone());
        if first { Answer::Status(500) } else { Answer::Ok }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_behind_a_failed_event_is_overtaken_while_it_is_leased_and_never_in_a_lane() {
    let reference = Reference::set(refuses_each_aggregate_once()).await;
    reference.write(EVENTS).await;
    // A batch ends in the middle of an aggregate; sorted, so that this alone is what reorders.
    reference.work(1, Settings { batch: 10, sorted: true, ..Settings::default() }).await;
    let naive = reference.0.ledger().await;

    let postbox = Postbox::set(refuses_each_aggregate_once()).await;
    postbox.write(EVENTS).await;
    postbox.drain(&eager()).await;
    let ours = postbox.outbox.ledger().await;

    let overtaken = naive.order_violations.len();
    println!(
        "2b, out of order: reference {overtaken} events of 10 aggregates, Postbox {}",
        ours.order_violations.len()
    );
    assert!(overtaken >= 1, "the reference shows the fault");
    assert!(ours.adds_up(), "{ours:?}");
    assert_eq!((ours.delivered, ours.requests), (200, 210));
}
