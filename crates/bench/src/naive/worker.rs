//! One worker: claims a batch, sends it, marks it.

use std::collections::HashSet;

use tokio_postgres::{Client, Error};

use super::claims::{Claims, Settings};
use super::post::Post;

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
    claims: Claims,
    post: Post,
}

impl Worker {
    /// Prepares a worker.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn prepare(client: Client, post: Post, settings: Settings) -> Result<Self, Error> {
        Ok(Self { claims: Claims::prepare(client, settings).await?, post })
    }

    /// Claims one batch, sends it row by row, and marks each row in a transaction of its own.
    ///
    /// # Errors
    /// When the database refuses; what the receiver refuses is part of the result.
    pub async fn work_batch(&mut self) -> Result<Batch, Error> {
        let claimed = self.claims.claim().await?;
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
                    self.claims.mark_sent(event).await?;
                    batch.sent += 1;
                }
                Err(error) => {
                    self.claims.mark_failed(event, &error).await?;
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
