//! A relay joins others.

use postbox_chaos::Timing;

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_joining_relay_is_balanced_within_two_heartbeats() {
    let scene = Scene::set(3, Timing::default()).await;
    scene.stage.sql(include_str!("balance.sql"));
    for number in 0..2 {
        scene.fleet.berth(number).start();
        scene.balanced(number + 1);
    }
    scene.fleet.berth(2).start();
    scene.balanced(3);
    let joined = scene.fleet.berth(2).pids()[0];
    assert!(scene.shares()[&joined] >= 64 - 2 * 22, "it has what the others had too much of");
    // Its own heartbeats between the first, with which it joined, and the one that brought its last shard.
    let heartbeats = scene.stage.number(&format!(
        "WITH newcomer AS (SELECT relay FROM outbox_relay WHERE label LIKE '%:{joined}')
         SELECT count(*) FROM story JOIN newcomer USING (relay)
         WHERE what = 'renewed' AND id < (SELECT max(id) FROM story JOIN newcomer USING (relay) WHERE what = 'taken')"
    ));
    assert!((1..=2).contains(&heartbeats), "it took {heartbeats} heartbeats");
}
