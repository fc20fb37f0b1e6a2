//! Events, written and accepted in a PostgreSQL transaction of the crate `sqlx`.
//!
//! ```ignore
//! use postbox::NewEvent;
//!
//! let mut tx = pool.begin().await?;
//! sqlx::query("UPDATE orders SET state = 'confirmed' WHERE id = $1").bind(4711_i64).execute(&mut *tx).await?;
//! let event = NewEvent::new("order", "4711", "order.confirmed", &["4200"])?;
//! postbox::sqlx::enqueue(&mut tx, &event).await?;
//! tx.commit().await?;
//! ```

#[cfg(feature = "receiver")]
mod receiving;

pub use postbox_postgres::consumer::AcceptError;
pub use postbox_postgres::consumer::sqlx::{accept, accept_in, accept_placed, accept_placed_in};
pub use postbox_postgres::producer::EnqueueError;
pub use postbox_postgres::producer::sqlx::{enqueue, enqueue_in};
pub use postbox_postgres::schema::{inbox_migration_sql, migration_sql};
#[cfg(feature = "receiver")]
pub use receiving::{receive, receive_in};
