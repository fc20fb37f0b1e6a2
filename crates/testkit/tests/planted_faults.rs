//! The simulator finds mistakes: each of these is planted in turn and must be caught.

use std::panic::catch_unwind;

use postbox_testkit::simulator::{Fault, Plan, SeamFault, run};

/// Worlds in which a planted mistake must show; without one, the first thousands of seeds are clean.
const WORLDS: u64 = 3_000;

/// Seeds until the mistake was caught, and how.
fn caught(plan: impl Fn(u64) -> Plan + std::panic::RefUnwindSafe) -> Option<(u64, String)> {
    (0..WORLDS).find_map(|seed| match catch_unwind(|| run(plan(seed))) {
        Ok(Ok(_)) => None,
        Ok(Err(broken)) => Some((seed + 1, broken)),
        Err(_) => Some((seed + 1, "the engine panicked".to_owned())),
    })
}

fn expect_caught(name: &str, plan: impl Fn(u64) -> Plan + std::panic::RefUnwindSafe) {
    let (worlds, broken) = caught(plan).unwrap_or_else(|| panic!("{name} was not caught in {WORLDS} worlds"));
    println!("{name}: caught in world {worlds}: {broken}");
}

#[test]
fn every_mistake_planted_in_the_engine_is_caught() {
    for fault in Fault::ALL {
        expect_caught(&format!("{fault:?}"), |seed| Plan { fault: Some(fault), ..Plan::troubled(seed) });
    }
}

#[test]
fn every_mistake_planted_around_the_engine_is_caught() {
    for fault in SeamFault::ALL {
        expect_caught(&format!("{fault:?}"), |seed| {
            // Relays that are frozen beyond their lease are what fencing is for.
            Plan { seam_fault: Some(fault), relays: 3, pauses: 5, ..Plan::troubled(seed) }
        });
    }
}
