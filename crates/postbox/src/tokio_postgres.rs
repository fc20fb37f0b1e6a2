//! Events, written and accepted in a transaction of the crate `tokio-postgres`.
//!
//! ```no_run
//! # async fn confirm(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use postbox::NewEvent;
//!
//! let mut tx = client.transaction().await?;
//! tx.execute("UPDATE orders SET state = 'confirmed' WHERE id = $1", &[&4711_i64]).await?;
//! let event = NewEvent::new("order", "4711", "order.confirmed", &["4200"])?;
//! postbox::tokio_postgres::enqueue(&mut tx, &event).await?;
//! tx.commit().await?;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "receiver")]
mod receiving;

pub use postbox_postgres::consumer::AcceptError;
pub use postbox_postgres::consumer::tokio_postgres::{accept, accept_in, accept_placed, accept_placed_in};
pub use postbox_postgres::producer::EnqueueError;
pub use postbox_postgres::producer::tokio_postgres::{enqueue, enqueue_in};
pub use postbox_postgres::schema::{inbox_migration_sql, migration_sql};
#[cfg(feature = "receiver")]
pub use receiving::{receive, receive_in};
