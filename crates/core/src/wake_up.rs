//! The seam to whoever hears of new events before the next look at the to-do list.
//!
//! A wake-up says *that* there may be something new, never what: the to-do list stays the only source of events. So one
//! that is late, lost, repeated or invented costs a look or a little time, and no promise depends on it.

use async_trait::async_trait;

use crate::store::StoreError;

/// What a listener hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// From now on it hears of everything new.
    Listening,
    /// Something may be new.
    News,
}

/// Hears of new events.
///
/// # Contract
/// - Listens on a connection of its own until that fails, then returns why; the caller listens again after a pause, and
///   polls as ever meanwhile.
/// - Says [`Heard::Listening`] once it is sure to hear of every event that commits from then on.
/// - The future may be dropped at any point, and leaves nothing behind on the server that outlives its session.
/// - Never waits for the caller: `heard` returns at once.
#[async_trait]
pub trait WakeUp: Send + Sync {
    /// A word for it in logs and configuration.
    fn name(&self) -> &'static str;

    /// Listens; returns why it could not, or could not any longer.
    async fn listen(&self, heard: &(dyn Fn(Heard) + Send + Sync)) -> StoreError;
}
