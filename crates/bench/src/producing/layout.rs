//! The three tables that events are written to.

use std::sync::atomic::{AtomicI64, Ordering};

use postbox_bench::naive::{self, NewRow};
use serde_json::value::RawValue;
use tokio_postgres::types::Json;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::Outcome;

/// Bytes of every payload.
pub(crate) const PAYLOAD_BYTES: usize = 250;

const AGGREGATE_TYPE: &str = "order";
const EVENT_TYPE: &str = "order.confirmed";

/// Rows per statement of a bulk load.
const BULK_ROWS: u32 = 1_000;

/// Where events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A table with the columns, constraints and indexes of `outbox` and without its triggers. The caller gives
    /// identity and sequence for nothing, so this is what an INSERT of that size costs at the least.
    Plain,
    /// `naive_outbox`, with `MAX(aggregate_seq) + 1`.
    Naive,
    /// `outbox`.
    Postbox,
}

impl Layout {
    pub(crate) async fn migrate(self, client: &Client) -> Outcome<()> {
        match self {
            Self::Naive => naive::migrate(client).await?,
            Self::Postbox => client.batch_execute(&postbox_postgres::schema::migration_sql(None)).await?,
            Self::Plain => {
                client.batch_execute(&postbox_postgres::schema::migration_sql(None)).await?;
                client.batch_execute(include_str!("plain.sql")).await?;
            }
        }
        Ok(())
    }

    /// Writes `events` events, spread evenly over `aggregates` aggregates, in a few large transactions.
    pub(crate) async fn load(self, client: &Client, events: u32, aggregates: u32) -> Outcome<()> {
        let statement = client
            .prepare(match self {
                Self::Plain => include_str!("load_plain.sql"),
                Self::Naive => include_str!("load_naive.sql"),
                Self::Postbox => include_str!("load_postbox.sql"),
            })
            .await?;
        let payload = payload()?;
        let mut from = 0;
        while from < events {
            let to = events.min(from + BULK_ROWS);
            let (first, last) = (i64::from(from), i64::from(to) - 1);
            client.execute(&statement, &[&first, &last, &i64::from(aggregates), &Json(&*payload)]).await?;
            from = to;
        }
        Ok(())
    }
}

/// Statements prepared on one connection to write single events.
pub(crate) struct Writer {
    client: Client,
    payload: Box<RawValue>,
    insert: Insert,
}

enum Insert {
    Plain(Statement),
    Naive(naive::Producer),
    Postbox(Statement),
}

impl Writer {
    pub(crate) async fn prepare(layout: Layout, client: Client) -> Outcome<Self> {
        let insert = match layout {
            Layout::Plain => Insert::Plain(client.prepare(include_str!("insert_plain.sql")).await?),
            Layout::Naive => Insert::Naive(naive::Producer::prepare(&client).await?),
            Layout::Postbox => Insert::Postbox(client.prepare(include_str!("insert_postbox.sql")).await?),
        };
        Ok(Self { client, payload: payload()?, insert })
    }

    /// Writes one event in a transaction of its own; returns how many tries failed before.
    pub(crate) async fn write(&self, aggregate_id: &str) -> Outcome<u64> {
        // No two events written to a plain table share a sequence, whatever was loaded before.
        static PLAIN_SEQUENCE: AtomicI64 = AtomicI64::new(1_000_000_000);
        let payload = Json(&*self.payload);
        match &self.insert {
            Insert::Plain(insert) => {
                let sequence = PLAIN_SEQUENCE.fetch_add(1, Ordering::Relaxed);
                self.client
                    .execute(
                        insert,
                        &[&sequence, &Uuid::now_v7(), &AGGREGATE_TYPE, &aggregate_id, &EVENT_TYPE, &payload],
                    )
                    .await?;
            }
            Insert::Naive(producer) => {
                let row = NewRow {
                    aggregate_type: AGGREGATE_TYPE,
                    aggregate_id,
                    event_type: EVENT_TYPE,
                    payload: &self.payload,
                };
                return Ok(producer.insert_retrying(&self.client, row).await?);
            }
            Insert::Postbox(insert) => {
                self.client.execute(insert, &[&AGGREGATE_TYPE, &aggregate_id, &EVENT_TYPE, &payload]).await?;
            }
        }
        Ok(0)
    }
}

/// A JSON object of [`PAYLOAD_BYTES`] bytes.
fn payload() -> Outcome<Box<RawValue>> {
    let head = r#"{"order":12345,"customer":"c-678","currency":"EUR","total":"123.45","note":""#;
    let text = format!("{head}{}\"}}", "n".repeat(PAYLOAD_BYTES - head.len() - 2));
    Ok(RawValue::from_string(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_has_its_size() {
        assert_eq!(payload().unwrap().get().len(), PAYLOAD_BYTES);
    }
}
