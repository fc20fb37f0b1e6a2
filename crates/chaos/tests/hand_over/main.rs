//! Relays that come, go and are paused beside others: who owns what, and what the receiver sees of it.

#![expect(clippy::unwrap_used, reason = "a panic is the failing assertion, in what the tests share as well")]

mod balance;
mod lease_lost;
mod rolling_restart;
mod scene;
