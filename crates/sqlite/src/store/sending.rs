//! What a comparison with an inbox reads.

use async_trait::async_trait;
use postbox_core::delivery::DeliveryState;
use postbox_core::inbox::Retention;
use postbox_core::outgoing::{Outgoing, Sent, Standing};
use postbox_core::store::StoreResult;
use rusqlite::{Connection, Row};
use uuid::Uuid;

use super::SqliteStore;
use super::clock;
use super::event::{bytes, optional_text, uuid};
use super::failure::Attempt;
use super::inbox::retention;

#[async_trait]
impl Outgoing for SqliteStore {
    async fn outbox_retention(&self) -> StoreResult<Option<Retention>> {
        self.operations.call_unbounded(|connection, _| retention(connection, "outbox")).await
    }

    async fn sent(&self, destination: &str, after: Option<Uuid>, limit: u32) -> StoreResult<Vec<Sent>> {
        let destination = destination.to_owned();
        self.operations
            .call_unbounded(move |connection, _| sent(connection, &destination, after, limit))
            .await
    }

    async fn estimate_events(&self) -> StoreResult<u64> {
        self.operations
            .call_unbounded(|connection, _| {
                let count = "SELECT count(*) AS count FROM outbox";
                Ok(connection.query_row(count, [], |row| bytes(row, "count"))?)
            })
            .await
    }
}

fn sent(
    connection: &mut Connection,
    destination: &str,
    after: Option<Uuid>,
    limit: u32,
) -> Attempt<Vec<Sent>> {
    let mut statement = connection.prepare_cached(include_str!("sql/sent.sql"))?;
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    let rows = statement.query_map((destination, after, limit), read_sent)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn read_sent(row: &Row<'_>) -> rusqlite::Result<Sent> {
    let state = optional_text(row, "state")?.and_then(|word| DeliveryState::parse(&word));
    Ok(Sent {
        event_id: uuid(row, "event_id")?,
        lane_id: row.get("lane_id")?,
        sequence: row.get("aggregate_seq")?,
        created_at: clock::timestamp(row, "created_at")?,
        sent_at: clock::optional_timestamp(row, "sent_at")?,
        standing: if row.get("pending")? { Standing::Open } else { Standing::of(state) },
    })
}
