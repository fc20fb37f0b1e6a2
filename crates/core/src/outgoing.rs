//! The producer's side of a comparison with an inbox.

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use crate::delivery::DeliveryState;
use crate::event::LaneId;
use crate::inbox::Retention;
use crate::store::StoreResult;

/// Where an event stands with one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The destination has confirmed it.
    Delivered,
    /// Not yet decided: on the to-do list, tried again, waiting or held. It may have arrived all the same.
    Open,
    /// Dead, discarded or expired. It may have arrived all the same.
    GivenUp,
    /// No route leads there.
    NotRouted,
}

impl Standing {
    /// What the state of the delivery means; `None` when there is no delivery and the event is not on the to-do list.
    #[must_use]
    pub fn of(state: Option<DeliveryState>) -> Self {
        use DeliveryState::{Dead, Delivered, Discarded, Expired, Held, Retry, Unrouted, Waiting};
        match state {
            Some(Delivered) => Self::Delivered,
            Some(Retry | Waiting | Held) => Self::Open,
            Some(Dead | Discarded | Expired) => Self::GivenUp,
            Some(Unrouted) | None => Self::NotRouted,
        }
    }
}

/// What the outbox knows of one event and one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The event.
    pub event_id: Uuid,
    /// Its aggregate.
    pub lane_id: LaneId,
    /// Its sequence in the aggregate.
    pub sequence: i64,
    /// When it was written.
    pub created_at: Timestamp,
    /// When the destination confirmed it.
    pub sent_at: Option<Timestamp>,
    /// Where it stands.
    pub standing: Standing,
}

/// The outbox as a comparison reads it.
#[async_trait]
pub trait Outgoing: Send + Sync {
    /// What the outbox's pruning keeps; `None` when it was never pruned.
    async fn outbox_retention(&self) -> StoreResult<Option<Retention>>;

    /// Every event and where it stands with `destination`, in order of `event_id` above `after`, at most `limit`.
    async fn sent(&self, destination: &str, after: Option<Uuid>, limit: u32) -> StoreResult<Vec<Sent>>;

    /// About how many events there are, for a progress bar.
    async fn estimate_events(&self) -> StoreResult<u64>;
}
