//! Bounds on everything the engine holds.

use std::time::Duration;

/// Bounds of one engine. Every queue, batch and map in it is limited by one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Events in memory, waiting, in flight or not yet settled. With payloads up to
    /// [`crate::store::INLINE_PAYLOAD_BYTES`] each, this bounds the memory of what waits.
    pub max_events: usize,
    /// Attempts in flight over all destinations.
    pub max_in_flight: usize,
    /// Payload bytes of all attempts in flight. One attempt alone may exceed it.
    pub max_in_flight_bytes: u64,
    /// Events of one aggregate that one scan brings; the rest is fetched by the aggregate's own index as it drains.
    pub rows_per_lane: u32,
    /// A settle is sent as soon as it has this many records.
    pub settle_records: usize,
    /// A settle is sent at the latest this long after its first record.
    pub settle_delay: Duration,
    /// An event with several destinations is taken off the to-do list this long after the first of them is done,
    /// the others parked where they stand, so that a slow destination keeps no event on the list.
    pub split_after: Duration,
    /// Longest pause between two looks at the to-do list, and at what is due again.
    pub poll_interval: Duration,
}

impl Default for Limits {
    /// Batch size and delay are the measured optimum of the design's prototype (section 4).
    fn default() -> Self {
        Self {
            max_events: 4_096,
            max_in_flight: 1_024,
            max_in_flight_bytes: 64 * 1024 * 1024,
            rows_per_lane: 64,
            settle_records: 500,
            settle_delay: Duration::from_millis(3),
            split_after: Duration::from_secs(1),
            poll_interval: Duration::from_millis(200),
        }
    }
}
