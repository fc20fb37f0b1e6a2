//! Transactional outbox: write the event in your own transaction, and it is delivered at least once and in order.
//!
//! A service that changes its database and then tells others of it will sooner or later do one without the other.
//! Here the event is a row in the table `outbox`, written in the same transaction as the change; the relay (the
//! command `postbox relay`, or `postbox::relay` in your own process) delivers what committed.
//!
//! # Features
//! None is on by default.
//!
//! | feature | gives |
//! |---|---|
//! | `tokio-postgres` | `postbox::tokio_postgres::enqueue` and `accept` |
//! | `sqlx` | `postbox::sqlx::enqueue` and `accept` (PostgreSQL) |
//! | `rusqlite` | `postbox::rusqlite::enqueue`, `accept` and `migrate` |
//! | `receiver` | `postbox::receiver`, and `receive` of each driver above: verify, accept and act in one transaction |
//! | `axum` | the same as an extractor and a response |
//! | `relay` | `postbox::relay`: the relay in your own process, with the store of each driver above |
//!
//! Any other client writes an event with a plain statement in its own transaction:
//!
//! ```sql
//! INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
//! VALUES ('order', '4711', 'order.confirmed', '{"total": 4200}');
//! ```
//!
//! `enqueue` writes an event next to the change that it tells of; `accept` remembers a received one next to what it made
//! the receiver do, so that a repeat does nothing.
//!
//! # An event
//!
//! ```
//! use postbox::NewEvent;
//!
//! #[derive(serde::Serialize)]
//! struct Confirmed {
//!     total: u32,
//! }
//!
//! let event = NewEvent::new("order", "4711", "order.confirmed", &Confirmed { total: 4200 })?;
//! assert_eq!(event.payload.get(), r#"{"total":4200}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

pub use postbox_core::event::{MAX_NAME_BYTES, NewEvent};
pub use postbox_core::inbox::{Acceptance, MAX_CONSUMER_BYTES, Place, Succession};

#[cfg(feature = "receiver")]
pub mod receiver;
#[cfg(feature = "relay")]
pub mod relay;
#[cfg(feature = "rusqlite")]
pub mod rusqlite;
#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(feature = "tokio-postgres")]
pub mod tokio_postgres;
