//! One suite for every [`Store`](postbox_core::store::Store) and its
//! [`Operations`](postbox_core::operations::Operations): each sentence of their contracts as a behaviour.
//!
//! An implementation writes a [`StoreHarness`] and, in a test file of its own,
//! `postbox_testkit::store_conformance!(harness);`, where `harness` is an `async fn() -> impl StoreHarness` that
//! makes a fresh database. Every behaviour then is a test.

pub mod beginning;
pub mod destinations;
pub mod due;
pub mod events;
mod harness;
pub mod heads;
pub mod leases;
pub mod overview;
pub mod producing;
pub mod pruning;
pub mod reading;
pub mod replaying;
pub mod reporting;
pub mod scanning;
mod scene;
pub mod settling;
mod suite;

pub use harness::{OpenTransaction, StoreHarness};
