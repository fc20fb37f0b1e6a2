//! The relay: drives the engine of `postbox-core` over a store and sinks.
//!
//! One task owns the engine and linearises everything that happens: what was read, what ended, what was settled, what
//! the lease says. Around it run one task for reads, one for settles, one for the lease, each with a database
//! connection of its own, and one task per attempt in flight.

mod attempt;
mod clerks;
mod config;
mod relay;
mod roster;

pub use config::{Binding, RelayConfig, RelayError, Summary};
pub use relay::run;
pub use roster::Endpoints;
