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
    // How long that takes depends on the machine; how many heartbeats, on the protocol alone.
    let beats = scene.stage.query(include_str!("heartbeats.sql"));
    assert_eq!(
        beats.trim(),
        "1 1",
        "heartbeats of the others until they hand back, and of its own until it takes"
    );
}
