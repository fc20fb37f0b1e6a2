//! The promises under fire: real processes, a private PostgreSQL, and signals that no process can catch.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is the failing assertion, outside of test functions as well"
)]

mod hand_over;
mod killing;
mod outage;
mod producer;
mod publishing;
mod record;
mod role;
mod scene;
