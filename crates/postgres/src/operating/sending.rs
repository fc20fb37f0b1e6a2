//! What a comparison with an inbox reads.

use async_trait::async_trait;
use jiff::Timestamp;
use postbox_core::delivery::DeliveryState;
use postbox_core::inbox::Retention;
use postbox_core::outgoing::{Outgoing, Sent, Standing};
use postbox_core::store::StoreResult;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::read_count;
use crate::reading::{Columns, unreadable};
use crate::store::PostgresStore;

#[async_trait]
impl Outgoing for PostgresStore {
    async fn outbox_retention(&self) -> StoreResult<Option<Retention>> {
        self.read_retention("outbox").await
    }

    async fn sent(&self, destination: &str, after: Option<Uuid>, limit: u32) -> StoreResult<Vec<Sent>> {
        let limit = i64::from(limit);
        let params = [(&destination as _, Type::TEXT), (&after as _, Type::UUID), (&limit as _, Type::INT8)];
        let rows = self.operate("read what was sent", include_str!("sent.sql"), &params).await?;
        rows.iter().map(read_sent).collect()
    }

    async fn estimate_events(&self) -> StoreResult<u64> {
        read_count(&self.operate("count the events", include_str!("estimate_events.sql"), &[]).await?)
    }
}

fn read_sent(row: &Row) -> StoreResult<Sent> {
    let mut columns = Columns::of(row, "a sent event");
    let event_id = columns.next()?;
    let (lane_id, sequence) = (columns.next()?, columns.next()?);
    let created_at = columns.next()?;
    let sent_at: Option<Timestamp> = columns.next()?;
    let state: Option<&str> = columns.next()?;
    let pending: bool = columns.next()?;
    let state = state
        .map(|word| DeliveryState::parse(word).ok_or_else(|| unreadable("a delivery's state", None)))
        .transpose()?;
    let standing = if pending { Standing::Open } else { Standing::of(state) };
    Ok(Sent { event_id, lane_id, sequence, created_at, sent_at, standing })
}
