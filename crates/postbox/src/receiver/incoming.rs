//! An event as it came in.

use jiff::Timestamp;
use postbox_core::inbox::Place;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use uuid::Uuid;

/// A verified event.
#[derive(Debug, Clone, Deserialize)]
pub struct Incoming {
    /// Its identity, the same in every repetition.
    pub event_id: Uuid,
    /// Kind of the event.
    #[serde(rename = "type")]
    pub event_type: String,
    /// When it was written.
    pub timestamp: Timestamp,
    /// Kind of the aggregate.
    pub aggregate_type: String,
    /// Identity of the aggregate.
    pub aggregate_id: String,
    /// Sequence in the aggregate, 1 and up.
    pub sequence: i64,
    /// The payload's exact text.
    pub data: Box<RawValue>,
}

impl Incoming {
    /// Reads the body of a request whose envelope is Postbox's own JSON.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(body).map_err(|error| {
            // serde's message quotes no values of the payload, which it does not look into.
            format!("the body is no event in Postbox's JSON envelope: {error}")
        })
    }

    /// The payload as a value.
    ///
    /// # Errors
    /// When it is another kind of value.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.data.get())
    }

    /// Its place in its aggregate, for a consumer that checks the order.
    #[must_use]
    pub fn place(&self) -> Place<'_> {
        Place {
            event_id: self.event_id,
            aggregate_type: &self.aggregate_type,
            aggregate_id: &self.aggregate_id,
            sequence: self.sequence,
        }
    }
}
