//! Writing an event under `MAX(aggregate_seq) + 1`.

use serde_json::value::RawValue;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Json;
use tokio_postgres::{Client, Error, Statement};
use uuid::Uuid;

/// An event to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewRow<'a> {
    /// Kind of the aggregate.
    pub aggregate_type: &'a str,
    /// Identity of the aggregate.
    pub aggregate_id: &'a str,
    /// Kind of the event.
    pub event_type: &'a str,
    /// JSON text.
    pub payload: &'a RawValue,
}

/// The insert, prepared for one connection.
pub struct Producer {
    insert: Statement,
}

impl Producer {
    /// Prepares the insert.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self { insert: client.prepare(include_str!("insert.sql")).await? })
    }

    /// One try, in whatever transaction `client` is in; returns the sequence.
    ///
    /// # Errors
    /// When the database refuses: with a unique violation if another transaction took the same number.
    pub async fn insert(&self, client: &Client, row: NewRow<'_>) -> Result<i64, Error> {
        let NewRow { aggregate_type, aggregate_id, event_type, payload } = row;
        let written = client
            .query_one(
                &self.insert,
                &[&Uuid::now_v7(), &aggregate_type, &aggregate_id, &event_type, &Json(payload)],
            )
            .await?;
        written.try_get(0)
    }

    /// Tries in a transaction of its own each time until the number was free; returns how many tries failed.
    ///
    /// # Errors
    /// When the database refuses for any other reason than a number that was taken.
    pub async fn insert_retrying(&self, client: &Client, row: NewRow<'_>) -> Result<u64, Error> {
        let mut failed = 0;
        loop {
            match self.insert(client, row).await {
                Ok(_) => return Ok(failed),
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => failed += 1,
                Err(error) => return Err(error),
            }
        }
    }
}
