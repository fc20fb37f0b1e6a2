//! The promises P1 to P5 in simulated worlds: real engines, modelled database and destinations, one seed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use postbox_testkit::simulator::{Plan, Report, run};

/// Fresh seeds begin here: `POSTBOX_SIM_SEED`, or the clock.
fn first_fresh_seed() -> u64 {
    std::env::var("POSTBOX_SIM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock after 1970");
        u64::try_from(now.as_micros()).expect("a clock before the year 586000")
    })
}

/// Number of fresh worlds: `POSTBOX_SIM_WORLDS`.
fn fresh_worlds() -> u64 {
    std::env::var("POSTBOX_SIM_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

/// Runs the worlds of these seeds, on every processor.
fn expect_all(seeds: Range<u64>, plan: impl Fn(u64) -> Plan + Sync) -> Report {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(0);
    let worker = || {
        let mut sum = Report::default();
        loop {
            // By their distance from the first: a seed may be close to the largest number.
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= seeds.end.wrapping_sub(seeds.start) {
                return sum;
            }
            let seed = seeds.start.wrapping_add(nth);
            let report = run(plan(seed)).unwrap_or_else(|broken| panic!("{broken}"));
            add(&mut sum, &report);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let mut sum = Report::default();
        for worker in workers {
            match worker.join() {
                Ok(report) => add(&mut sum, &report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        sum
    })
}

fn add(sum: &mut Report, report: &Report) {
    sum.events += report.events;
    sum.attempts += report.attempts;
    sum.repeats += report.repeats;
    sum.steps += report.steps;
}

#[test]
fn a_calm_world_delivers_everything_exactly_once() {
    let sum = expect_all(0..200, Plan::calm);
    assert_eq!(sum.repeats, 0);
    assert_eq!(sum.events, 200 * 60);
}

#[test]
fn no_fixed_seed_breaks_a_promise() {
    let sum = expect_all(0..2_000, Plan::troubled);
    assert!(sum.repeats > 0, "worlds this troubled have duplicates: {sum:?}");
}

#[test]
fn no_fresh_seed_breaks_a_promise() {
    let first = first_fresh_seed();
    let sum = expect_all(first..first.wrapping_add(fresh_worlds()), Plan::troubled);
    println!("{} fresh worlds from seed {first}: {sum:?}", fresh_worlds());
}

/// A world with a backlog many times larger than the engine's window.
fn crowded(seed: u64) -> Plan {
    Plan { events: 600, aggregates: 40, troubled_ms: 4_000, ..Plan::calm(seed) }
}

/// Longest wait of any event at destination 1 outside the hot aggregate, over some worlds.
fn longest_wait(plan: impl Fn(u64) -> Plan) -> Duration {
    let worlds = (0..20).map(|seed| run(plan(seed)).unwrap_or_else(|broken| panic!("{broken}")));
    worlds.filter_map(|report| report.longest_wait.get(&(1, false)).copied()).max().expect("deliveries")
}

#[test]
fn a_dead_destination_does_not_delay_another() {
    let alone = longest_wait(crowded);
    let beside = longest_wait(|seed| Plan { first_destination_dead: true, ..crowded(seed) });
    println!("longest wait beside a healthy destination {alone:?}, beside a dead one {beside:?}");
    assert!(beside <= alone * 2, "beside a healthy destination {alone:?}, beside a dead one {beside:?}");
}

#[test]
fn a_slow_destination_does_not_delay_another() {
    let alone = longest_wait(crowded);
    let beside = longest_wait(|seed| Plan { first_destination_slow: true, ..crowded(seed) });
    println!("longest wait beside a quick destination {alone:?}, beside a slow one {beside:?}");
    assert!(beside <= alone * 2, "beside a quick destination {alone:?}, beside a slow one {beside:?}");
}

#[test]
fn a_busy_aggregate_does_not_delay_another() {
    let alone = longest_wait(crowded);
    let beside = longest_wait(|seed| Plan { hot: 900, ..crowded(seed) });
    println!("longest wait in a mixed world {alone:?}, beside a busy aggregate {beside:?}");
    assert!(beside <= alone * 2, "in a mixed world {alone:?}, beside a busy aggregate {beside:?}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    assert_eq!(run(Plan::troubled(7)), run(Plan::troubled(7)));
}

/// `POSTBOX_SIM_ONE=<seed>` replays one world (and `POSTBOX_SIM_TRACE=1` prints everything that happens in it).
#[test]
fn one_named_seed_replays() {
    if let Some(seed) = std::env::var("POSTBOX_SIM_ONE").ok().and_then(|text| text.parse().ok()) {
        println!("{:#?}", Plan::troubled(seed));
        println!("{:?}", run(Plan::troubled(seed)).unwrap_or_else(|broken| panic!("{broken}")));
    }
}
