//! Wrappers that fail like networks do: before the work is done, or after it, losing the answer.

mod dice;
mod plan;
mod sink;
mod store;

pub use dice::Dice;
pub use plan::{Fault, FaultPlan};
pub use sink::FaultySink;
pub use store::FaultyStore;
