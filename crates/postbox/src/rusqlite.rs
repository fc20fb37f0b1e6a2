//! Events, written and accepted in a transaction of the crate `rusqlite`.
//!
//! ```
//! use postbox::NewEvent;
//! use rusqlite::{Connection, TransactionBehavior};
//!
//! let mut connection = Connection::open_in_memory()?;
//! postbox::rusqlite::migrate(&mut connection)?;
//! connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")?;
//!
//! let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
//! tx.execute("INSERT INTO orders (id, state) VALUES (4711, 'confirmed')", [])?;
//! let event = NewEvent::new("order", "4711", "order.confirmed", &["4200"])?;
//! postbox::rusqlite::enqueue(&mut tx, &event)?;
//! tx.commit()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "receiver")]
mod receiving;

pub use postbox_sqlite::{
    AcceptError, EnqueueError, MigrateError, accept, accept_placed, enqueue, inbox_migration_sql, migrate,
    migrate_inbox, migration_sql,
};
#[cfg(feature = "receiver")]
pub use receiving::receive;
