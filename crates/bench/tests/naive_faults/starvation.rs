//! Fault 7: the lowest ids come first, also when they fail.

use std::time::Duration;

use postbox_bench::naive::{Order, Settings};
use postbox_core::destination::{BreakerPolicy, Destination};
use postbox_core::retry::RetryPolicy;
use postbox_testkit::receiver::{Answer, Script};

use crate::scene::{Events, LEASE, Outbox, Postbox, Reference, eager};

const EVENTS: Events = Events { aggregates: 350, each: 1, together: true };

/// Aggregates that fail, those with the lowest ids.
const FAILING: usize = 250;

fn script() -> Script {
    Script::each(|request| {
        let (_, id) = request.aggregate.as_ref().unwrap();
        if is_failing(id) { Answer::Status(500) } else { Answer::Ok }
    })
}

fn is_failing(aggregate_id: &str) -> bool {
    aggregate_id < format!("order-{FAILING:03}").as_str()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_aggregates_with_low_ids_starve_the_healthy_ones_where_these_are_sorted_by_id() {
    let reference = Reference::set(script()).await;
    reference.write(EVENTS).await;
    reference.work(1, Settings { order: Order::Aggregate, ..Settings::default() }).await;
    let starved_for = failures_before_the_last_healthy(&reference.0);

    let postbox = Postbox::set(script()).await;
    let relays = postbox.relays(1, LEASE, &destination()).await;
    postbox.write(EVENTS).await;
    postbox.outbox.becomes("SELECT count(*) FROM outbox_delivery WHERE state = 'delivered'", 100).await;
    relays.stop().await;
    let ours = failures_before_the_last_healthy(&postbox.outbox);

    println!("7, failures before the last healthy event went out: reference {starved_for}, Postbox {ours}");
    assert!(starved_for > FAILING, "the reference shows the fault");
    assert!(ours <= FAILING, "none of the failing is tried again before all healthy ones were delivered");
}

/// None that failed is due again in this test. With the default breaker, which must not take these for a receiver that
/// is down.
fn destination() -> Destination {
    let retry = RetryPolicy { delays: vec![Duration::from_secs(3_600)], ..RetryPolicy::default() };
    Destination { retry, breaker: Some(BreakerPolicy::default()), ..eager() }
}

fn failures_before_the_last_healthy(outbox: &Outbox) -> usize {
    let entries = outbox.receiver.entries();
    let last = entries.iter().rposition(|entry| !is_failing(&entry.aggregate_id)).unwrap();
    entries[..last].iter().filter(|entry| is_failing(&entry.aggregate_id)).count()
}
