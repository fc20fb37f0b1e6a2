//! Lanes in memory: the order of one destination's deliveries for one aggregate.

use std::collections::VecDeque;

use super::AttemptId;
use crate::event::{LaneId, OutboxId, Shard};

/// A lane: destination (by its number in the engine) and aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LaneKey {
    pub(super) destination: usize,
    pub(super) lane_id: LaneId,
}

/// What the engine knows of a lane that has something in memory.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Shard of the aggregate.
    pub(super) shard: Shard,
    /// Deliveries to be made, in order of id. The first one is in flight when `in_flight` is set.
    pub(super) queue: VecDeque<OutboxId>,
    /// The one attempt this lane may have.
    pub(super) in_flight: Option<AttemptId>,
    /// Something of this lane is parked, or about to be, that is not in `queue`: whatever arrives is parked behind it.
    pub(super) closed: bool,
    /// Deliveries of this lane that are parked, or came to their end in the parked state, without the database having
    /// confirmed it. The lane is forgotten only when this is 0: until then no read can tell whether it is blocked.
    pub(super) unsettled: u32,
    /// The lane stands in its destination's queue of lanes that can start.
    pub(super) ready: bool,
}

impl Lane {
    /// Nothing to do and nothing to wait for.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_none() && self.unsettled == 0
    }

    /// Puts `id` in its place, behind an attempt that is in flight.
    pub(super) fn insert(&mut self, id: OutboxId) {
        let first = usize::from(self.in_flight.is_some());
        let place = self
            .queue
            .iter()
            .skip(first)
            .position(|&other| other > id)
            .map_or(self.queue.len(), |n| n + first);
        self.queue.insert(place, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replayed_delivery_goes_before_later_ones_but_behind_the_attempt_in_flight() {
        let mut lane =
            Lane { queue: VecDeque::from([7, 9]), in_flight: Some(AttemptId(1)), ..Lane::default() };
        lane.insert(3);
        lane.insert(8);
        lane.insert(12);
        assert_eq!(lane.queue, [7, 3, 8, 9, 12]);
    }
}
