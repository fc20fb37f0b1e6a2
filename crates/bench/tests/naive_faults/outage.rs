//! Fault 6: a failed row is claimable again at once.

use std::time::{Duration, Instant};

use postbox_bench::naive::Settings;
use postbox_core::destination::{BreakerPolicy, Destination};
use postbox_testkit::receiver::{Answer, Script};

use crate::scene::{Events, LEASE, Postbox, Reference, eager};

const EVENTS: Events = Events { aggregates: 100, each: 1, together: true };

/// An outage of ten seconds, at a tenth of its length: Postbox's times are a tenth of the default ones, the reference
/// has no times that could be scaled.
const SCALE: u32 = 10;
const OUTAGE: Duration = Duration::from_secs(1);

/// The default schedule and the default breaker, ten times as fast.
fn scaled() -> Destination {
    let mut destination = eager();
    let patient = Destination::new("receiver", destination.route.clone());
    destination.retry.delays = patient.retry.delays.iter().map(|&delay| delay / SCALE).collect();
    destination.breaker = patient.breaker.map(|breaker| BreakerPolicy {
        patience: breaker.patience / SCALE,
        window: breaker.window / SCALE,
        cool_down: breaker.cool_down / SCALE,
        longest_cool_down: breaker.longest_cool_down / SCALE,
        ..breaker
    });
    destination
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_ten_seconds_kills_everything_where_there_is_no_backoff_and_nothing_where_there_is() {
    let reference = Reference::set(Script::always(Answer::Ok)).await;
    let postbox = Postbox::set(Script::always(Answer::Ok)).await;
    reference.0.receiver.go_away().await;
    postbox.outbox.receiver.go_away().await;
    reference.write(EVENTS).await;
    postbox.write(EVENTS).await;

    let relays = postbox.relays(1, LEASE, &scaled()).await;
    let began = Instant::now();
    // It is as long as said; longer, when a busy machine lets the reference take longer to give everything up.
    let (naive_survived, ()) = tokio::join!(
        async {
            reference.work(1, Settings::default()).await;
            began.elapsed()
        },
        tokio::time::sleep(OUTAGE)
    );
    reference.0.receiver.come_back().await;
    postbox.outbox.receiver.come_back().await;
    reference.work(1, Settings::default()).await;
    postbox.drained().await;
    relays.stop().await;

    let dead = reference.0.number("SELECT count(*) FROM naive_outbox WHERE status = 'dead'").await;
    let ours = postbox.outbox.number("SELECT dead FROM outbox_health").await;
    println!("6, dead of 100: reference {dead} (after {naive_survived:.1?} of the outage), Postbox {ours}");
    assert!(dead >= 10, "the reference shows the fault");
    let hit = postbox.outbox.number("SELECT count(*) FROM outbox_delivery WHERE attempts > 1").await;
    assert!(hit > 0, "the outage was noticed");
    assert_eq!(ours, 0);
    assert_eq!(postbox.outbox.ledger().await.delivered, 100);
}
