//! What Postbox's own tests stand on: private servers, conformance suites and faults. Unpublished.

pub mod faults;
pub mod ledger;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod python;
pub mod receiver;
pub mod simulator;
pub mod sink_conformance;
pub mod store_conformance;
pub mod tunnel;
