//! What the suite needs of an implementation.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postbox_core::event::NewEvent;
use postbox_core::operations::Operations;
use postbox_core::reports::Reports;
use postbox_core::store::Store;

/// A fresh, migrated database of one implementation; nothing else uses it.
#[async_trait]
pub trait StoreHarness: Send + Sync {
    /// A store on the database, with connections of its own; each call gives another one.
    async fn store(&self) -> Arc<dyn Store>;

    /// The operator's view of the database.
    async fn operations(&self) -> Arc<dyn Operations>;

    /// The database as whoever hears reports uses it, with connections of its own; each call gives another one.
    async fn reports(&self) -> Arc<dyn Reports>;

    /// Writes `events` in order in one producer's transaction and commits it, or rolls it back and gives the
    /// database's message. An event with a repeated `event_id` inserts nothing and is no error.
    async fn commit(&self, events: &[NewEvent]) -> Result<(), String>;

    /// Writes `events` in order in one producer's transaction and rolls it back.
    async fn roll_back(&self, events: &[NewEvent]);

    /// Writes `events` in order in a producer's transaction that stays open; `None` where a database has one writer
    /// at a time, so that nothing can overtake it.
    async fn begin(&self, events: &[NewEvent]) -> Option<Box<dyn OpenTransaction>>;

    /// Runs statements as anybody with access to the database may, in SQL that every database understands.
    async fn sql(&self, statements: &str);

    /// Lets time pass without waiting: every moment stored in any table moves into the past by `duration`
    /// (`created_at`, `deliver_after`, `expires_at`, `next_attempt_at`, `sent_at`, `leased_until`, `started_at`,
    /// and those of destinations, their secrets, and reports).
    async fn pass_time(&self, duration: Duration);
}

/// A producer's transaction that has written and not ended.
#[async_trait]
pub trait OpenTransaction: Send {
    /// Commits it.
    async fn commit(self: Box<Self>);
    /// Rolls it back.
    async fn roll_back(self: Box<Self>);
}
