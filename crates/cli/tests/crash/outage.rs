//! The database goes away and comes back.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use postbox_testkit::ledger::Ledger;
use postbox_testkit::postgres::{ClusterOptions, PgCluster};
use postbox_testkit::receiver::{Answer, Receiver, Script};

use crate::scene::{Scene, Timing};

/// How long the database is away.
const OUTAGE: Duration = Duration::from_secs(3);

/// Deliveries go on this soon after the database is back.
const SECONDS_AFTER: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_relay_survives_the_database_going_away_and_coming_back() {
    let cluster = PgCluster::start_new(&ClusterOptions::new());
    let timing = Timing {
        lease: Duration::from_secs(3),
        attempt: Duration::from_secs(1),
        retry: Duration::from_millis(50),
    };
    let work = Answer::After(Duration::from_millis(20), Box::new(Answer::Ok));
    let receiver = Receiver::start(Script::always(work)).await;
    let scene = Scene::set(&cluster, &receiver.url(), timing);
    let mut relay = scene.relay(&[]);
    scene.produce_widely(20);
    scene.drained();

    scene.produce_widely(400);
    receiver.wait_for(50).await;
    cluster.stop();
    let before = relay.processor_time();
    tokio::time::sleep(OUTAGE).await;
    let used = relay.processor_time() - before;
    assert!(relay.is_running(), "the relay ended: {}", scene.logged());
    assert!(used < OUTAGE / 4, "it used {used:?} of processor time in {OUTAGE:?} without a database");
    cluster.start();
    let back = Instant::now();
    scene.produce("after", 1);
    scene.drained();
    assert!(back.elapsed() < SECONDS_AFTER, "went on after {:?}", back.elapsed());

    scene.produce_widely(400);
    receiver.wait_for(receiver.count() + 50).await;
    cluster.restart_immediate();
    scene.drained();
    assert!(relay.is_running(), "the relay ended: {}", scene.logged());

    let committed: HashSet<_> =
        scene.sql("SELECT event_id FROM outbox").lines().map(|line| line.parse().unwrap()).collect();
    let ledger = Ledger::of(&receiver.entries(), &committed, &HashSet::new());
    assert!(ledger.adds_up(), "{ledger:?}");
    assert_eq!(ledger.delivered, 821);
    relay.terminate();
    assert_eq!(relay.ended().code(), Some(0));
}
