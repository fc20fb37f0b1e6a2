//! Private PostgreSQL clusters: made for a test, never shared with anything else, gone when the test process is.

mod binaries;
mod cluster;
mod database;
mod watchdog;

pub use cluster::{ClusterOptions, PgCluster};
pub use database::Database;
