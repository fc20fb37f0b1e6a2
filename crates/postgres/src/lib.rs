//! Postbox on PostgreSQL 13 and newer: the tables, the producer's and the consumer's half, and the store that a relay
//! works on.
//!
//! Without the feature `store` nothing but the SQL text of [`schema`] and the enabled halves are compiled: a
//! service that only writes or receives events gets no TLS library and no connection handling.

#[cfg(feature = "store")]
mod connection;
#[cfg(any(feature = "tokio-postgres", feature = "sqlx"))]
pub mod consumer;
#[cfg(feature = "store")]
mod endpoints;
#[cfg(feature = "store")]
mod failure;
#[cfg(feature = "store")]
pub mod grants;
#[cfg(feature = "store")]
mod horizon;
#[cfg(feature = "store")]
mod inbox;
#[cfg(feature = "store")]
mod leasing;
#[cfg(feature = "store")]
mod migrating;
#[cfg(feature = "store")]
mod operating;
#[cfg(any(feature = "tokio-postgres", feature = "sqlx"))]
pub mod producer;
#[cfg(feature = "store")]
mod reading;
#[cfg(feature = "store")]
mod reports;
pub mod schema;
#[cfg(feature = "store")]
mod settling;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
mod target;
#[cfg(feature = "store")]
mod wake_up;

#[cfg(feature = "store")]
pub use store::PostgresStore;
#[cfg(feature = "store")]
pub use wake_up::NotifyWakeUp;
