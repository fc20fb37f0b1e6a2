//! Every relay is replaced in turn while events are written and delivered.

use std::sync::atomic::{AtomicBool, Ordering};

use postbox_chaos::Timing;
use postbox_testkit::process::eventually;

use crate::scene::Scene;

const RELAYS: usize = 3;

/// Ends the load, also when an assertion fails: the scope waits for the thread that makes it.
struct Load<'a>(&'a AtomicBool);

impl Drop for Load<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rolling_restart_of_three_relays_under_load_loses_nothing_reorders_nothing_repeats_nothing() {
    let scene = Scene::set(RELAYS, Timing::default()).await;
    scene.fleet.berths().for_each(|mut berth| berth.start());
    scene.balanced(RELAYS);
    let loaded = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while loaded.load(Ordering::Relaxed) {
                scene.produce(200, 2);
            }
        });
        let _load = Load(&loaded);
        for number in 0..RELAYS {
            let before = scene.audience.count();
            eventually("events are delivered", || scene.audience.count() > before + 100);
            scene.fleet.berth(number).relay().terminate();
            let end = scene.fleet.berth(number).relay().ended();
            assert_eq!(end.code(), Some(0));
            scene.fleet.berth(number).start();
            scene.balanced(RELAYS);
        }
    });
    scene.drained();
    let ledger = scene.ledger();
    assert_eq!(ledger.repeated, 0, "{ledger:?}");
    assert_eq!(ledger.requests, ledger.delivered, "every event was requested once");
    let logbook = scene.fleet.logbook();
    assert_eq!((logbook.evicted, logbook.cut_short, logbook.refused.len()), (0, 0, 0));
}
