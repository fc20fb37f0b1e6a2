//! What the suite needs of a sink and its peer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use postbox_core::event::{Event, Payload};
use postbox_core::outcome::FailureClass;
use postbox_core::sink::{Attempt, Sink};
use uuid::Uuid;

/// What the peer does with every message from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerFault {
    /// Nothing: it takes the message and confirms it.
    None,
    /// It cannot be reached: nothing listens where it was.
    Unreachable,
    /// It refuses for a reason that passes: overload, maintenance.
    Overloaded,
    /// It understood this message and refuses it.
    Refuses,
    /// It takes the message and the connection breaks before the confirmation.
    AnswerLost,
    /// It takes the message and says nothing.
    Silent,
    /// It answers something that is not its protocol.
    Garbage,
    /// It answers without end.
    Endless,
}

impl PeerFault {
    /// The class an attempt must have; `None` where it has to be confirmed, or may be, because the confirmation itself
    /// is well-formed.
    #[must_use]
    pub fn class(self) -> Option<FailureClass> {
        match self {
            Self::None | Self::Endless => None,
            Self::Unreachable | Self::Overloaded => Some(FailureClass::Transient),
            Self::Refuses => Some(FailureClass::Rejected),
            Self::AnswerLost | Self::Silent | Self::Garbage => Some(FailureClass::Unknown),
        }
    }
}

/// A sink and the peer it sends to.
#[async_trait]
pub trait SinkHarness: Send + Sync {
    /// The sink; always the same one.
    fn sink(&self) -> Arc<dyn Sink>;

    /// Makes the peer behave so from the next message on.
    async fn misbehave(&self, fault: PeerFault);

    /// Waits until the peer has read `count` messages in all, confirmed or not.
    async fn wait_for(&self, count: usize);

    /// Ids of the events the peer has read, in order, repetitions included.
    fn received(&self) -> Vec<Uuid>;

    /// Payloads the peer has read, in the same order, byte for byte.
    fn payloads(&self) -> Vec<String>;

    /// A secret that the sink was configured with, if it takes any.
    fn secret(&self) -> Option<String>;

    /// A payload that the sink can send and that holds `json`; `json` itself unless payloads have a form of their own
    /// there.
    fn payload(&self, json: &str) -> String {
        json.to_owned()
    }

    /// An event of aggregate `order`/`aggregate` with that payload.
    fn event(&self, aggregate: &str, sequence: i64, json: &str) -> Arc<Event> {
        event(aggregate, sequence, &self.payload(json))
    }
}

/// An event of aggregate `order`/`aggregate` whose payload is exactly `payload`.
#[must_use]
pub fn event(aggregate: &str, sequence: i64, payload: &str) -> Arc<Event> {
    Arc::new(Event {
        id: sequence,
        event_id: Uuid::now_v7(),
        lane_id: 1,
        shard: 1,
        aggregate_type: "order".to_owned(),
        aggregate_id: aggregate.to_owned(),
        aggregate_seq: sequence,
        event_type: "order.confirmed".to_owned(),
        payload: Payload::Inline(payload.to_owned()),
        headers: None,
        created_at: Timestamp::now(),
    })
}

/// A first attempt of `event` that may take 5 seconds.
#[must_use]
pub fn attempt(event: Arc<Event>) -> Attempt {
    Attempt { event, number: 1, replay: false, maybe_delivered: false, timeout: Duration::from_secs(5) }
}
