//! The chaos of a quarter of an hour, in a minute.

use std::time::Duration;

use postbox_chaos::{Performance, perform};
use uuid::Uuid;

/// Chosen anew for each run, unless the variable repeats an earlier one.
fn seed() -> u64 {
    match std::env::var("POSTBOX_TEST_SEED") {
        Ok(seed) => seed.parse().expect("POSTBOX_TEST_SEED is a number"),
        Err(_) => Uuid::now_v7().as_u64_pair().1 >> 16,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minute_of_trouble_loses_nothing_reorders_nothing_and_repeats_no_more_than_it_may() {
    let seed = seed();
    println!("POSTBOX_TEST_SEED={seed}");
    let verdict = perform(Performance {
        seed,
        lasting: Duration::from_secs(50),
        producer_pause: Duration::from_millis(40),
        progress: Duration::from_secs(10),
    })
    .await;
    println!("{verdict}");
    assert!(verdict.adds_up());
    assert!(verdict.committed > 1_000 && verdict.troubles.len() > 5, "hardly anything was on trial");
}
