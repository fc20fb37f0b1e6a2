//! The one table.

use tokio_postgres::{Client, Error};

/// Creates `naive_outbox`.
///
/// # Errors
/// When the database refuses, for example because the table exists.
pub async fn migrate(client: &Client) -> Result<(), Error> {
    client.batch_execute(include_str!("schema.sql")).await
}
