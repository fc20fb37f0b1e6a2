//! Claiming, sending, marking.

use std::collections::HashSet;
use std::time::Duration;

use tokio_postgres::{Client, Error, Row, Statement};
use uuid::Uuid;

use super::post::Post;

/// Which rows a worker claims first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The oldest.
    #[default]
    Id,
    /// The rows of one aggregate together: `ORDER BY aggregate_id, aggregate_seq`.
    Aggregate,
}

/// How a worker works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Rows claimed at once.
    pub batch: u32,
    /// How long a claim lasts.
    pub lease: Duration,
    /// Which rows come first.
    pub order: Order,
    /// Claims after which a row that fails is dead.
    pub max_attempts: i32,
}

impl Default for Settings {
    /// What articles suggest: 50 rows for 30 s, the oldest first, 8 attempts.
    fn default() -> Self {
        Self { batch: 50, lease: Duration::from_secs(30), order: Order::Id, max_attempts: 8 }
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

/// What became of one batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Batch {
    /// Rows claimed; none when nothing was claimable.
    pub claimed: u64,
    /// Sent and marked.
    pub sent: u64,
    /// Refused by the receiver and marked.
    pub failed: u64,
    /// Left under their lease, because an earlier row of their aggregate failed in this batch.
    pub skipped: u64,
}

/// One worker with its connection to the database and its connection to the receiver.
pub struct Worker {
    client: Client,
    post: Post,
    settings: Settings,
    claim: Statement,
    sent: Statement,
    failed: Statement,
}

impl Worker {
    /// Prepares a worker.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn prepare(client: Client, post: Post, settings: Settings) -> Result<Self, Error> {
        let claim = match settings.order {
            Order::Id => include_str!("claim_by_id.sql"),
            Order::Aggregate => include_str!("claim_by_aggregate.sql"),
        };
        Ok(Self {
            claim: client.prepare(claim).await?,
            sent: client.prepare(include_str!("mark_sent.sql")).await?,
            failed: client.prepare(include_str!("mark_failed.sql")).await?,
            client,
            post,
            settings,
        })
    }

    /// Takes a batch under a lease, in whatever order the database returns it.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn claim_batch(&self) -> Result<Vec<Claimed>, Error> {
        let lease_ms = self.settings.lease.as_secs_f64() * 1_000.0;
        let rows = self.client.query(&self.claim, &[&i64::from(self.settings.batch), &lease_ms]).await?;
        rows.iter().map(Claimed::read).collect()
    }

    /// Claims one batch, sends it row by row, and marks each row in a transaction of its own.
    ///
    /// # Errors
    /// When the database refuses; what the receiver refuses is part of the result.
    pub async fn work_batch(&mut self) -> Result<Batch, Error> {
        let claimed = self.claim_batch().await?;
        let mut batch = Batch { claimed: claimed.len() as u64, ..Batch::default() };
        let mut failing: HashSet<(&str, &str)> = HashSet::new();
        for event in &claimed {
            let aggregate = (event.aggregate_type.as_str(), event.aggregate_id.as_str());
            if failing.contains(&aggregate) {
                batch.skipped += 1;
                continue;
            }
            match self.post.send(event).await {
                Ok(()) => {
                    self.client.execute(&self.sent, &[&event.id]).await?;
                    batch.sent += 1;
                }
                Err(error) => {
                    let reason = error.to_string();
                    let arguments: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                        [&event.id, &self.settings.max_attempts, &reason];
                    self.client.execute(&self.failed, &arguments).await?;
                    failing.insert(aggregate);
                    batch.failed += 1;
                }
            }
        }
        Ok(batch)
    }

    /// Works until nothing is claimable and returns the sum of all batches.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn work_until_empty(&mut self) -> Result<Batch, Error> {
        let mut sum = Batch::default();
        loop {
            let batch = self.work_batch().await?;
            if batch.claimed == 0 {
                return Ok(sum);
            }
            sum.claimed += batch.claimed;
            sum.sent += batch.sent;
            sum.failed += batch.failed;
            sum.skipped += batch.skipped;
        }
    }
}
