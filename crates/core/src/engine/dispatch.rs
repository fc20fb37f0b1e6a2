//! Dispositions: what becomes of a delivery, and when its event leaves the to-do list.
//!
//! An event on the to-do list collects the dispositions of its deliveries and leaves the list with all of them in one
//! settle. Two things make it leave earlier, with its unfinished deliveries parked where they stand (`waiting`; the
//! database makes them heads when nothing is ahead of them): one of its deliveries was done a while ago
//! ([`super::Limits::split_after`]), or a later event of its aggregate is to be parked. The second keeps the rule that
//! makes a crash harmless: within a lane, everything parked comes before everything on the to-do list.

use std::time::Duration;

use super::lane::{Lane, LaneKey};
use super::{Engine, Moment, planted};
use crate::delivery::{AttemptFailure, DeliveryRecord, DeliveryState};
use crate::event::OutboxId;

/// What becomes of a delivery.
#[derive(Debug)]
pub(super) struct Disposition {
    pub(super) state: DeliveryState,
    pub(super) retry_in: Option<Duration>,
    pub(super) status: Option<u16>,
    pub(super) external_id: Option<String>,
    pub(super) failure: Option<AttemptFailure>,
    /// The attempt that was begun was not made.
    pub(super) withdrawn: bool,
}

impl Disposition {
    pub(super) fn plain(state: DeliveryState) -> Self {
        Self { state, retry_in: None, status: None, external_id: None, failure: None, withdrawn: false }
    }

    pub(super) fn retry_in(delay: Duration) -> Self {
        Self { retry_in: Some(delay), ..Self::plain(DeliveryState::Retry) }
    }
}

impl Engine {
    /// Decides on one delivery. Its lane's queue no longer holds it.
    pub(super) fn dispose(&mut self, now: Moment, key: LaneKey, id: OutboxId, disposition: Disposition) {
        let name = self.destinations[key.destination].spec.name.clone();
        let Some(held) = self.window.get_mut(id) else { return };
        let (event, on_todo, several) =
            (std::sync::Arc::clone(&held.event), held.on_todo, held.deliveries.len() > 1);
        let first = held.deliveries.iter().all(|delivery| delivery.done.is_none());
        let Some(delivery) = held.delivery_mut(key.destination) else { return };
        let record = DeliveryRecord {
            id,
            lane_id: key.lane_id,
            shard: event.shard,
            destination: name,
            state: disposition.state,
            attempts: delivery.attempts,
            uncounted: delivery.uncounted,
            withdrawn: disposition.withdrawn,
            retry_in: disposition.retry_in,
            status: disposition.status,
            external_id: disposition.external_id,
            failure: disposition.failure,
        };
        if !on_todo {
            let same_batch = delivery.stored_in == self.settling.number;
            self.window.forget_delivery(key.destination, id);
            if same_batch {
                self.settling.replace(record);
            } else {
                self.window.haunt(key.destination, id);
                self.settling.record(now, record, Some(key.destination));
            }
            self.note_lane(key);
            return;
        }
        let parked = record.state.is_unfinished();
        delivery.done = Some(record);
        if parked {
            self.destinations.enliven(key.destination);
        }
        if parked
            && !planted!(self, ForgetClosedLane)
            && let Some(lane) = self.lanes.get_mut(&key)
        {
            lane.unsettled += 1;
        }
        if first && several {
            self.splits.push_back((now + self.limits.split_after, id));
        }
        let done = |held: &super::window::HeldEvent| held.deliveries.iter().all(|d| d.done.is_some());
        if self.window.get(id).is_some_and(done) || planted!(self, SettleHalfAnEvent) {
            self.dispatch(now, id);
        }
    }

    /// Takes an event off the to-do list, and before it every earlier one of its aggregate that a later park of this
    /// one would overtake.
    pub(super) fn dispatch(&mut self, now: Moment, id: OutboxId) {
        let Some(held) = self.window.get(id) else { return };
        if !held.is_terminal() && !planted!(self, ParkOutOfOrder) {
            for earlier in self.window.earlier_todo(id, held.event.lane_id) {
                if self.window.get(earlier).is_some_and(|held| !held.is_terminal()) {
                    self.dispatch_alone(now, earlier);
                }
            }
        }
        self.dispatch_alone(now, id);
    }

    fn dispatch_alone(&mut self, now: Moment, id: OutboxId) {
        let Some(held) = self.window.get_mut(id) else { return };
        if !held.on_todo {
            return;
        }
        let event = std::sync::Arc::clone(&held.event);
        let mut records = Vec::with_capacity(held.deliveries.len());
        for delivery in &mut held.deliveries {
            let key = LaneKey { destination: delivery.destination, lane_id: delivery.lane_id };
            if let Some(record) = delivery.done.take() {
                records.push((key, true, record));
            } else {
                self.destinations.enliven(delivery.destination);
                delivery.stored_in = self.settling.number;
                if planted!(self, SettleHalfAnEvent) {
                    continue;
                }
                let record = DeliveryRecord {
                    id,
                    lane_id: delivery.lane_id,
                    shard: event.shard,
                    destination: self.destinations[delivery.destination].spec.name.clone(),
                    state: DeliveryState::Waiting,
                    attempts: delivery.attempts,
                    uncounted: delivery.uncounted,
                    withdrawn: false,
                    retry_in: None,
                    status: None,
                    external_id: None,
                    failure: None,
                };
                records.push((key, false, record));
            }
        }
        self.window.leave_todo(id);
        self.settling.dispatch(now, event.shard, id);
        for (key, done, record) in records {
            let unfinished = record.state.is_unfinished();
            self.settling.record(now, record, None);
            if done {
                self.window.forget_delivery(key.destination, id);
            }
            match (unfinished, done) {
                (true, true) if !planted!(self, ForgetClosedLane) => self.settling.note_lane(key),
                (true, true) => {}
                (true, false) => self.note_lane(key),
                (false, _) => {}
            }
        }
    }

    /// A lane with something parked must be remembered until the record just made for it is confirmed.
    fn note_lane(&mut self, key: LaneKey) {
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.unsettled += 1;
            self.settling.note_lane(key);
        }
    }

    /// Parks everything that waits in a lane: its head failed, or its destination is far behind.
    pub(super) fn close_lane(&mut self, now: Moment, key: LaneKey) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.closed = true;
        let flying = usize::from(lane.in_flight.is_some());
        for id in lane.queue.split_off(flying) {
            self.destinations[key.destination].queued -= 1;
            if planted!(self, ForgetSuccessors) {
                self.window.leave_todo(id);
                self.window.forget_delivery(key.destination, id);
            } else if self.window.get(id).is_some_and(|held| held.on_todo) {
                self.dispose(now, key, id, Disposition::plain(DeliveryState::Waiting));
            } else {
                // Its row is parked already, and the head of its lane brings it back.
                self.window.forget_delivery(key.destination, id);
            }
        }
    }

    /// Forgets a lane that has nothing in memory, once whatever is read from then on knows whether it is blocked.
    pub(super) fn leave_lane(&mut self, key: LaneKey) {
        let Some(lane) = self.lanes.get(&key) else { return };
        if !lane.is_quiet() {
            return;
        }
        if lane.closed && self.feed.is_reading() {
            self.retiring.push(key);
        } else {
            self.lanes.remove(&key);
        }
    }

    /// Splits events of which one delivery was done a while ago.
    pub(super) fn split_slow_events(&mut self, now: Moment) {
        while let Some(&(at, id)) = self.splits.front()
            && at <= now
        {
            self.splits.pop_front();
            if self.window.get(id).is_some_and(|held| held.on_todo) {
                self.dispatch(now, id);
            }
        }
    }

    /// The lane of `key`, made when there is none.
    pub(super) fn lane_mut(&mut self, key: LaneKey, shard: crate::event::Shard) -> &mut Lane {
        self.lanes.entry(key).or_insert_with(|| Lane { shard, ..Lane::default() })
    }
}
