//! Fault 8: a claim lasts for a while, however long the batch takes.

use std::time::Duration;

use postbox_bench::naive::Settings;
use postbox_core::destination::Destination;
use postbox_testkit::receiver::{Answer, Script};

use crate::scene::{Events, Postbox, Reference, eager};

/// Work of the receiver on each request.
const WORK: Duration = Duration::from_millis(5);

fn script() -> Script {
    Script::always(Answer::After(WORK, Box::new(Answer::Ok)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_shorter_than_a_batch_doubles_deliveries_where_rows_are_leased_and_none_where_it_is_renewed()
{
    let reference = Reference::set(script()).await;
    reference.write(Events { aggregates: 200, each: 1, together: true }).await;
    // The batch of the first takes a second at least, while the second looks for rows whose lease has run out.
    let settings = Settings { batch: 200, lease: Duration::from_millis(100), ..Settings::default() };
    let worker = || reference.work_until_finished(settings.clone());
    tokio::join!(worker(), worker());
    let naive = reference.0.ledger().await;

    // One of the two relays works on half of this or more, one event after the other: for longer than its lease.
    let lease = Duration::from_secs(3);
    let events = 2 * i64::try_from(lease.as_millis() / WORK.as_millis()).unwrap();
    let postbox = Postbox::set(script()).await;
    let slow = Destination { concurrency: 1, timeout: Duration::from_millis(1_500), ..eager() };
    let relays = postbox.relays(2, lease, &slow).await;
    postbox.write(Events { aggregates: events / 2, each: 2, together: false }).await;
    postbox.drained().await;
    relays.stop().await;
    let ours = postbox.outbox.ledger().await;

    println!(
        "8, delivered again: reference {} of 200, Postbox {} of {events}",
        naive.repeated, ours.repeated
    );
    assert!(naive.repeated >= 10, "the reference shows the fault");
    assert!(ours.adds_up(), "{ours:?}");
    assert_eq!((ours.requests, ours.repeated), (ours.delivered, 0));
}
