//! A pool of threads that share one connection.
//!
//! It follows drivers that open a transaction with the first statement and leave its end to the caller (Python's
//! DB-API, JDBC without auto-commit): each thread marks what it sent, whoever meets an error rolls back before it
//! goes on, and the batch is committed when all threads are done. But the transaction belongs to the connection, not
//! to the thread: a rollback takes back what all the others have marked by then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use tokio_postgres::{Client, Error};

use super::claims::{Claimed, Claims, Settings};
use super::post::Post;
use super::worker::Batch;

/// Threads (here: tasks), each with its own connection to the receiver, and one connection to the database for all.
pub struct Pool {
    claims: Arc<Claims>,
    posts: Vec<Post>,
}

/// What the threads take their rows from.
type Queue = Arc<Mutex<VecDeque<Claimed>>>;

impl Pool {
    /// Prepares a pool of one thread for each of `posts`.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn prepare(client: Client, posts: Vec<Post>, settings: Settings) -> Result<Self, Error> {
        Ok(Self { claims: Arc::new(Claims::prepare(client, settings).await?), posts })
    }

    /// Claims one batch and commits that, lets the threads send and mark it, and commits the marks. The result counts
    /// what was sent, not what is still marked at the end.
    ///
    /// # Errors
    /// When the database refuses; what the receiver refuses is part of the result.
    ///
    /// # Panics
    /// When a thread panicked.
    pub async fn work_batch(&mut self) -> Result<Batch, Error> {
        let claimed = self.claims.claim().await?;
        let mut batch = Batch { claimed: claimed.len() as u64, ..Batch::default() };
        let queue = Queue::new(Mutex::new(claimed.into()));
        let mut threads = JoinSet::new();
        for post in self.posts.drain(..) {
            threads.spawn(work(Arc::clone(&self.claims), Arc::clone(&queue), post));
        }
        while let Some(done) = threads.join_next().await {
            let (post, share) = done.expect("a thread runs to its end")?;
            self.posts.push(post);
            batch.sent += share.sent;
            batch.failed += share.failed;
        }
        self.claims.client.batch_execute("COMMIT").await?;
        Ok(batch)
    }
}

/// One thread, until the queue is empty.
async fn work(claims: Arc<Claims>, queue: Queue, mut post: Post) -> Result<(Post, Batch), Error> {
    let mut share = Batch::default();
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(event) = next() {
        match post.send(&event).await {
            Ok(()) => {
                open_transaction(&claims.client).await?;
                claims.mark_sent(&event).await?;
                share.sent += 1;
            }
            Err(error) => {
                claims.client.batch_execute("ROLLBACK").await?;
                open_transaction(&claims.client).await?;
                claims.mark_failed(&event, &error).await?;
                share.failed += 1;
            }
        }
    }
    Ok((post, share))
}

/// What such a driver does before a statement. In an open transaction it changes nothing (the server warns).
async fn open_transaction(client: &Client) -> Result<(), Error> {
    client.batch_execute("BEGIN").await
}
