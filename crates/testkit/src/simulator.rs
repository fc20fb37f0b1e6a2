//! A deterministic simulator: real engines over a modelled database and modelled destinations, in virtual time.
//!
//! One seed decides everything: latencies, answers lost after the work was done, crashes, pauses longer than the
//! lease, an absent database, late commits with lower ids, rolled-back producers, hot lanes, poison events, replays.
//! The promises P1 to P5 are checked while it runs and at its end; a failing world prints its seed and runs again
//! exactly the same.

mod checks;
mod plan;
mod random;
mod relay;
mod store;
mod world;

pub use plan::{Plan, SeamFault};
pub use postbox_core::engine::fault::Fault;
pub use random::Random;
pub use world::{Report, World};

/// Runs the world of `plan`.
///
/// # Errors
/// The first broken promise, with the seed that repeats it.
pub fn run(plan: Plan) -> Result<Report, String> {
    let seed = plan.seed;
    World::new(plan).run().map_err(|broken| format!("seed {seed}: {broken}"))
}
