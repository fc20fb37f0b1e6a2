//! One suite for every [`Sink`](postbox_core::sink::Sink): each sentence of its contract as a behaviour, told with a
//! peer that misbehaves.
//!
//! A sink writes a [`SinkHarness`] and, in a test file of its own, `postbox_testkit::sink_conformance!(harness);`,
//! where `harness` is an `async fn() -> impl SinkHarness` that starts a peer and a sink towards it.

pub mod bounds;
pub mod confirming;
pub mod failing;
mod harness;
mod suite;

pub use harness::{PeerFault, SinkHarness, attempt, event};
