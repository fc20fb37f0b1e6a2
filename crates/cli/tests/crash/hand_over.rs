//! From one relay to the next: by death, by request, by the end of the work.

use std::time::{Duration, Instant};

use postbox_testkit::postgres::PgCluster;
use postbox_testkit::process::eventually;
use postbox_testkit::receiver::{Answer, Receiver, Script};

use crate::scene::{CONCURRENCY, Scene, Timing};

/// What a takeover may take beyond the lease: eviction, a poll, and a busy machine.
const SLACK: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_relay_waits_and_takes_over_when_the_first_is_killed() {
    const LEASE: Duration = Duration::from_secs(3);
    let timing =
        Timing { lease: LEASE, attempt: Duration::from_millis(500), retry: Duration::from_millis(50) };
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let scene = Scene::set(PgCluster::shared(), &receiver.url(), timing);
    let mut first = scene.relay(&[]);
    scene.produce_widely(100);
    scene.drained();
    let _second = scene.relay(&[]);
    eventually("the second relay has joined", || scene.number("SELECT count(*) FROM outbox_relay") == 2);
    scene.produce_widely(100);
    scene.drained();
    assert_eq!(receiver.count(), 200, "two relays side by side sent something twice");

    first.kill();
    let killed = Instant::now();
    scene.produce_widely(100);
    scene.drained();
    assert!(killed.elapsed() < LEASE + SLACK, "took over after {:?}", killed.elapsed());
    assert_eq!(receiver.count(), 300);
    for lane in 1..=100 {
        let of_lane = format!("wide-{lane}");
        let requests = receiver.requests();
        let sequences: Vec<_> = requests
            .iter()
            .filter(|request| request.aggregate.as_ref().is_some_and(|(_, id)| *id == of_lane))
            .map(|request| request.sequence.unwrap())
            .collect();
        assert_eq!(sequences, [1, 2, 3], "{of_lane}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_drains_and_releases() {
    let receiver = Receiver::start(Script::always(Answer::Held)).await;
    let scene = Scene::set(PgCluster::shared(), &receiver.url(), Timing::default());
    let mut first = scene.relay(&[]);
    scene.produce_widely(5);
    receiver.wait_for(5).await;
    first.terminate();
    eventually("the relay says that it stops", || scene.logged().contains("waiting for attempts in flight"));
    scene.produce("late", 1);
    assert!(first.is_running(), "it left attempts in flight behind");
    receiver.release();
    assert_eq!(first.ended().code(), Some(0));
    assert_eq!(receiver.count(), 5, "a relay that was told to stop started something");
    assert_eq!(scene.delivered(), 5);
    assert_eq!(scene.number("SELECT count(*) FROM outbox_relay"), 0);
    assert_eq!(scene.number("SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL"), 0);

    // The lease of this scene lasts a minute: a successor that had to wait for it would be noticed.
    let began = Instant::now();
    let _second = scene.relay(&[]);
    scene.drained();
    assert!(began.elapsed() < Timing::default().lease / 2, "the successor waited {:?}", began.elapsed());
    assert_eq!(receiver.count(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_drains_and_exits() {
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let scene = Scene::set(PgCluster::shared(), &receiver.url(), Timing::default());
    scene.produce("busy", 300);
    scene.produce_widely(CONCURRENCY * 10);
    let mut relay = scene.relay(&["--once"]);
    assert_eq!(relay.ended().code(), Some(0));
    assert_eq!(receiver.count(), 300 + CONCURRENCY * 10);
    assert_eq!(scene.number("SELECT pending + struggling FROM outbox_health"), 0);
    assert_eq!(scene.number("SELECT count(*) FROM outbox_relay"), 0);
}
