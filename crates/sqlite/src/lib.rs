//! Postbox on SQLite: the tables, the producer, the consumer's inbox and the store.
//!
//! The embedded default: business data, outbox and relay share one file, and nothing has to be installed.
//!
//! - [`migrate`] creates the tables, [`migration_sql`] prints them for people who run their own migrations.
//! - [`enqueue`] writes an event in the caller's own transaction. Any other client does the same with a plain
//!   `INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES (…)`. For a repeatable insert use
//!   `ON CONFLICT (event_id) DO NOTHING`; `INSERT OR IGNORE` would also swallow an event that breaks a rule, and
//!   `INSERT OR REPLACE` would delete the event it replaces.
//! - [`accept`] says whether a consumer meets an event for the first time, in the transaction of what it does then.
//! - [`SqliteStore`] is what the relay and the operator's commands work on.

#[cfg(feature = "consumer")]
mod consumer;
#[cfg(feature = "producer")]
mod producer;
mod schema;
#[cfg(feature = "store")]
mod store;

#[cfg(feature = "consumer")]
pub use consumer::{AcceptError, accept, accept_placed};
#[cfg(feature = "producer")]
pub use producer::{EnqueueError, enqueue};
pub use schema::{MigrateError, inbox_migration_sql, migrate, migrate_inbox, migration_sql};
#[cfg(feature = "store")]
pub use store::{SqliteStore, parse_url};
