//! A relay that is paused beyond its lease.

use std::collections::BTreeMap;

use postbox_chaos::CONCURRENCY;
use postbox_testkit::process::eventually;
use postbox_testkit::proxy::Weather;

use crate::scene::{SHORT, Scene};

/// Aggregates, and events of each: more than are delivered before the pause.
const LANES: usize = 200;
const ROUNDS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_relay_stopped_for_longer_than_its_lease_starts_nothing_on_shards_it_lost() {
    let scene = Scene::set(2, SHORT).await;
    scene.fleet.berth(0).start();
    scene.balanced(1);
    scene.produce(LANES, ROUNDS);
    let received = |count| eventually("requests arrive", || scene.audience.count() >= count);
    received(100);
    // Its next settle is sent, and is still on its way when the lease has run out.
    scene.fleet.berth(0).database_link().set_weather(Weather::Mute);
    received(scene.audience.count() + 100);
    scene.fleet.berth(0).relay().pause();
    let paused_with = scene.audience.count();
    assert!(paused_with < LANES * ROUNDS, "it had nothing left to start");

    scene.fleet.berth(1).start();
    let successor = scene.fleet.berth(1).pids()[0];
    eventually("its shards go over", || scene.shares() == BTreeMap::from([(successor, 64)]));
    scene.drained();
    let delivered_by_then = scene.audience.count();

    scene.fleet.berth(0).database_link().set_weather(Weather::Clear);
    scene.fleet.berth(0).relay().resume();
    eventually("the late settle is refused", || !scene.fleet.berth(0).logbook().refused.is_empty());
    eventually("it knows that it was evicted", || scene.fleet.berth(0).logbook().evicted == 1);
    scene.balanced(2);
    // What had been handed to a connection before the pause may still have gone out: each of them once, and nothing else.
    let late = scene.audience.count() - delivered_by_then;
    assert!(late <= CONCURRENCY, "it started something on a shard that it lost: {late} requests");

    scene.produce(LANES, 1);
    scene.drained();
    let ledger = scene.ledger();
    assert!(ledger.repeated > 0, "what it did not settle was sent again by its successor");
    assert!(scene.fleet.berth(1).logbook().refused.is_empty(), "the successor lost nothing");
}
