//! Fault 5: a claim counts as an attempt.

use std::time::Duration;

use postbox_bench::naive::Settings;
use postbox_testkit::receiver::{Answer, Script};

use crate::scene::{Events, Outbox, Postbox, Reference, eager};

/// One aggregate.
const EVENTS: Events = Events { aggregates: 1, each: 10, together: true };

/// Requests that an event is allowed.
const ALLOWED: usize = 8;

/// Everything is refused until it is given up.
fn script() -> Script {
    Script::always(Answer::Status(500))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_behind_a_failing_one_burn_attempts_where_claims_are_counted_and_none_in_a_lane() {
    let reference = Reference::set(script()).await;
    reference.write(EVENTS).await;
    // Claims run out as soon as they can, so that the case need not wait for it.
    let settings = Settings { sorted: true, lease: Duration::ZERO, ..Settings::default() };
    reference.work_until_finished(settings).await;
    let counted = reference.0.number("SELECT sum(attempts) FROM naive_outbox").await;
    let burnt = counted - i64::try_from(reference.0.receiver.count()).unwrap();
    let cut_short = tried_less_than_allowed(&reference.0);

    let postbox = Postbox::set(script()).await;
    postbox.write(EVENTS).await;
    postbox.drain(&eager()).await;
    let counted = postbox.outbox.number("SELECT sum(attempts)::bigint FROM outbox_delivery").await;
    let honest = i64::try_from(postbox.outbox.receiver.count()).unwrap();
    let none_cut_short = tried_less_than_allowed(&postbox.outbox);

    println!(
        "5, attempts without a request: reference {burnt}, Postbox {}; given up before {ALLOWED} requests: \
         reference {cut_short}, Postbox {none_cut_short} of 10",
        counted - honest
    );
    assert!(burnt >= 10 && cut_short >= 1, "the reference shows the fault");
    assert_eq!((counted, honest, none_cut_short), (80, 80, 0));
}

/// Events (all are dead) that were requested less often than allowed.
fn tried_less_than_allowed(outbox: &Outbox) -> usize {
    let entries = outbox.receiver.entries();
    let requests = |sequence| entries.iter().filter(|entry| entry.sequence == sequence).count();
    (1..=EVENTS.each).filter(|&sequence| requests(sequence) < ALLOWED).count()
}
