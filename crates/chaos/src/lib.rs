//! Relays, database, network and receiver of a small shop, troubled by a plan that one seed decides, and the ledger of
//! what the receiver got. `docs/guarantees.md` says how to run it and what it showed.

mod audience;
mod clock;
mod evidence;
mod exposure;
mod fleet;
mod journal;
mod logbook;
mod performance;
mod plan;
mod program;
mod report;
mod shop;
mod stage;
mod tracks;
mod verdict;

pub use audience::{Audience, Mood};
pub use fleet::{Berth, CONCURRENCY, Fleet, Timing};
pub use logbook::Logbook;
pub use performance::{Performance, perform};
pub use plan::Plan;
pub use stage::Stage;
pub use verdict::Verdict;
