//! The nine faults of the naive design. Each case runs on the reference, which must show the fault (so the case can see
//! it), and on Postbox, which must not. What was measured is in `docs/guarantees.md`; with `--nocapture` each case
//! prints its figures.

#![expect(clippy::unwrap_used, reason = "a panic is the failing assertion, in what the tests share as well")]

mod burnt_attempts;
mod colliding_writers;
mod one_worker;
mod outage;
mod pruned_sequence;
mod scene;
mod shared_connection;
mod short_lease;
mod starvation;
mod two_workers;
