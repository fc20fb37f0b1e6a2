//! Spilling: what to do when the window is full of what waits for some destinations, while another has nothing to do.
//!
//! The surplus of the destinations that are behind is parked, so that the to-do list can be read on. That costs each parked
//! delivery a second write, so it is done only when the window stays full: a destination that is merely busy makes room
//! by itself soon enough.

use std::time::Duration;

use super::lane::LaneKey;
use super::{Engine, Moment};

/// Poll intervals after a spill in which a full window is spilled at once: a destination that was behind still is.
const STILL_BEHIND: u32 = 5;

/// Least time between two looks for something to spill.
const PAUSE: Duration = Duration::from_millis(5);

/// What the engine remembers of full windows.
#[derive(Debug, Default)]
pub(super) struct Spilling {
    /// Since when there has been no room.
    full_since: Option<Moment>,
    last_spill: Option<Moment>,
    not_before: Moment,
}

impl Spilling {
    pub(super) fn has_room(&mut self) {
        self.full_since = None;
    }

    /// When to look for something to spill: a full window is given half a poll interval to empty by itself.
    pub(super) fn due_at(&self, poll_interval: Duration) -> Option<Moment> {
        let since = self.full_since?;
        let behind = self.last_spill.is_some_and(|at| since <= at + poll_interval * STILL_BEHIND);
        Some(if behind { since } else { since + poll_interval / 2 }.max(self.not_before))
    }
}

impl Engine {
    /// There is no room in the window: makes some, if it has been so for too long.
    pub(super) fn spill(&mut self, now: Moment) {
        self.spilling.full_since.get_or_insert(now);
        if self.spilling.due_at(self.limits.poll_interval).is_some_and(|at| at > now) {
            return;
        }
        if self.can_spill(now) && self.park_surplus(now) {
            self.spilling.last_spill = Some(now);
            self.spilling.not_before = now + PAUSE;
        } else {
            self.spilling.not_before = now + self.limits.poll_interval;
        }
    }

    /// Whether the window is full while a destination has nothing to do.
    pub(super) fn can_spill(&self, now: Moment) -> bool {
        self.room() == 0
            && self.destinations.len() >= 2
            && self.destinations.iter().any(|slot| slot.is_hungry(now))
    }

    /// Parks what destinations have waiting beyond their share of the window. Whether there was any.
    fn park_surplus(&mut self, now: Moment) -> bool {
        let share = self.limits.max_events / (2 * self.destinations.len());
        let mut parked = false;
        for destination in 0..self.destinations.len() {
            let keep = share.max(2 * self.destinations[destination].spec.concurrency);
            if self.destinations[destination].queued <= keep {
                continue;
            }
            let mut lanes: Vec<LaneKey> =
                self.lanes.keys().filter(|key| key.destination == destination).copied().collect();
            lanes.sort_unstable();
            for key in lanes {
                if self.destinations[destination].queued <= keep {
                    break;
                }
                self.close_lane(now, key);
                self.leave_lane(key);
                parked = true;
            }
        }
        parked
    }
}
