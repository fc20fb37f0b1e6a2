//! What Postbox's own tests stand on: private servers, conformance suites and faults. Unpublished.

pub mod postgres;
