//! Claiming rows, and marking what became of them.

use std::time::Duration;

use tokio_postgres::{Client, Error, Row, Statement};
use uuid::Uuid;

use super::post::PostError;

/// Which rows a worker claims first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The oldest.
    #[default]
    Id,
    /// The rows of one aggregate together: `ORDER BY aggregate_id, aggregate_seq`.
    Aggregate,
}

/// How rows are claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Rows claimed at once.
    pub batch: u32,
    /// How long a claim lasts.
    pub lease: Duration,
    /// Which rows come first.
    pub order: Order,
    /// Whether a batch is sorted by id once it is claimed. Articles send it as `UPDATE … RETURNING` returned it.
    pub sorted: bool,
    /// Claims after which a row that fails is dead.
    pub max_attempts: i32,
}

impl Default for Settings {
    /// What articles suggest: 50 rows for 30 s, the oldest first, 8 attempts.
    fn default() -> Self {
        Self { batch: 50, lease: Duration::from_secs(30), order: Order::Id, sorted: false, max_attempts: 8 }
    }
}

/// A row under a lease.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// Primary key.
    pub id: i64,
    /// Identity towards receivers.
    pub event_id: Uuid,
    /// Kind of the aggregate.
    pub aggregate_type: String,
    /// Identity of the aggregate.
    pub aggregate_id: String,
    /// Number within the aggregate.
    pub aggregate_seq: i64,
    /// Kind of the event.
    pub event_type: String,
    /// JSON text, as jsonb writes it.
    pub payload: String,
    /// Claims so far, this one included.
    pub attempts: i32,
}

impl Claimed {
    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.try_get(0)?,
            event_id: row.try_get(1)?,
            aggregate_type: row.try_get(2)?,
            aggregate_id: row.try_get(3)?,
            aggregate_seq: row.try_get(4)?,
            event_type: row.try_get(5)?,
            payload: row.try_get(6)?,
            attempts: row.try_get(7)?,
        })
    }

    /// The JSON body that is sent.
    #[must_use]
    pub fn envelope(&self) -> String {
        let text = |value: &str| serde_json::Value::from(value).to_string();
        format!(
            r#"{{"event_id":"{}","type":{},"aggregate_type":{},"aggregate_id":{},"sequence":{},"data":{}}}"#,
            self.event_id,
            text(&self.event_type),
            text(&self.aggregate_type),
            text(&self.aggregate_id),
            self.aggregate_seq,
            self.payload
        )
    }
}

/// The statements on one connection.
pub(super) struct Claims {
    pub(super) client: Client,
    settings: Settings,
    claim: Statement,
    sent: Statement,
    failed: Statement,
}

impl Claims {
    pub(super) async fn prepare(client: Client, settings: Settings) -> Result<Self, Error> {
        let claim = match settings.order {
            Order::Id => include_str!("claim_by_id.sql"),
            Order::Aggregate => include_str!("claim_by_aggregate.sql"),
        };
        Ok(Self {
            claim: client.prepare(claim).await?,
            sent: client.prepare(include_str!("mark_sent.sql")).await?,
            failed: client.prepare(include_str!("mark_failed.sql")).await?,
            client,
            settings,
        })
    }

    /// Takes a batch under a lease.
    pub(super) async fn claim(&self) -> Result<Vec<Claimed>, Error> {
        let lease_ms = self.settings.lease.as_secs_f64() * 1_000.0;
        let rows = self.client.query(&self.claim, &[&i64::from(self.settings.batch), &lease_ms]).await?;
        let mut claimed = rows.iter().map(Claimed::read).collect::<Result<Vec<_>, _>>()?;
        if self.settings.sorted {
            claimed.sort_unstable_by_key(|event| event.id);
        }
        Ok(claimed)
    }

    pub(super) async fn mark_sent(&self, event: &Claimed) -> Result<(), Error> {
        self.client.execute(&self.sent, &[&event.id]).await?;
        Ok(())
    }

    /// Releases the row for the next claim, or gives it up when it was claimed often enough.
    pub(super) async fn mark_failed(&self, event: &Claimed, error: &PostError) -> Result<(), Error> {
        let (limit, reason) = (self.settings.max_attempts, error.to_string());
        self.client.execute(&self.failed, &[&event.id, &limit, &reason]).await?;
        Ok(())
    }
}
