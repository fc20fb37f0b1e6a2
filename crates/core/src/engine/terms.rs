//! Shards gained, lost and handed back.

use std::collections::HashSet;
use std::collections::btree_map::Entry;

use super::lane::LaneKey;
use super::{AttemptId, Engine, Moment, planted};
use crate::event::{OutboxId, Shard};
use crate::lease::Term;

/// A shard this relay owns.
#[derive(Debug)]
pub(super) struct ShardSlot {
    pub(super) epoch: i64,
    /// The shard is being handed back: nothing new is started in it.
    pub(super) draining: bool,
}

impl Engine {
    /// The lease was renewed: `terms` is everything this relay owns, and `until` is when it will have run out.
    /// An empty list means that everything is lost.
    pub fn set_terms(&mut self, now: Moment, terms: &[Term], until: Moment) {
        self.lease_until = until;
        let gone: Vec<Shard> = self
            .shards
            .iter()
            .filter(|(shard, slot)| !terms.contains(&Term { shard: **shard, epoch: slot.epoch }))
            .map(|(shard, _)| *shard)
            .collect();
        for shard in gone {
            self.counters.lease_lost += 1;
            self.lose(shard);
        }
        for &term in terms {
            if let Entry::Vacant(slot) = self.shards.entry(term.shard) {
                slot.insert(ShardSlot { epoch: term.epoch, draining: false });
                self.feed.gained(now, term);
            }
        }
        self.destinations.all_take_turns();
    }

    /// The terms this relay owns, draining ones included.
    #[must_use]
    pub fn terms(&self) -> Vec<Term> {
        self.shards.iter().map(|(&shard, slot)| Term { shard, epoch: slot.epoch }).collect()
    }

    /// Shards that are not being handed back.
    #[must_use]
    pub fn working_shards(&self) -> usize {
        self.shards.values().filter(|slot| !slot.draining).count()
    }

    /// Forgets everything about a shard that belongs to somebody else now.
    pub(super) fn lose(&mut self, shard: Shard) {
        self.shards.remove(&shard);
        self.feed.lost(shard);
        let gone: Vec<LaneKey> =
            self.lanes.iter().filter(|(_, lane)| lane.shard == shard).map(|(key, _)| *key).collect();
        let mut cancelled: Vec<AttemptId> = Vec::new();
        for key in &gone {
            if let Some(lane) = self.lanes.remove(key) {
                self.destinations[key.destination].queued -=
                    lane.queue.len() - usize::from(lane.in_flight.is_some());
                cancelled.extend(lane.in_flight);
            }
        }
        for slot in self.destinations.iter_mut() {
            slot.ready.retain(|key| self.lanes.contains_key(key));
        }
        cancelled.sort_unstable();
        for attempt in cancelled {
            if let Some(flight) = self.attempts.remove(&attempt) {
                self.in_flight_bytes -= flight.bytes;
                self.destinations[flight.key.destination].gate.cancelled(attempt);
                self.destinations.landed(flight.key.destination);
                self.cancelled.push(attempt);
            }
        }
        self.retiring.retain(|key| !gone.contains(key));
        for id in self.window.of_shard(shard) {
            self.window.forget(id);
        }
        self.window.forget_aggregates(shard);
        let is_lost = |key: &LaneKey| gone.contains(key);
        let fading = self.fading.iter_mut().map(|trail| trail.take_shard(shard, is_lost));
        let trails: Vec<_> = fading.chain(self.settling.drop_shard(shard, is_lost)).collect();
        if !planted!(self, KeepGhosts) {
            for trail in &trails {
                self.window.lay(trail);
            }
        }
    }

    /// Attempts to abort: their shard was lost.
    pub fn take_cancelled(&mut self) -> Vec<AttemptId> {
        std::mem::take(&mut self.cancelled)
    }

    /// Begins to hand back `count` shards (those of the highest numbers): what waits in them is left to the next
    /// owner, what is in flight is awaited.
    pub fn drain(&mut self, now: Moment, count: usize) {
        let shards: Vec<Shard> = self
            .shards
            .iter()
            .rev()
            .filter(|(_, slot)| !slot.draining)
            .map(|(&shard, _)| shard)
            .take(count)
            .collect();
        for shard in shards {
            self.drain_shard(now, shard);
        }
    }

    /// Begins to hand back everything.
    pub fn drain_all(&mut self, now: Moment) {
        self.drain(now, self.shards.len());
    }

    fn drain_shard(&mut self, now: Moment, shard: Shard) {
        if let Some(slot) = self.shards.get_mut(&shard) {
            slot.draining = true;
        }
        self.feed.lost(shard);
        // An event that is done for one destination must be recorded, and what is recorded as parked must not
        // overtake what stays on the to-do list: so each aggregate is recorded up to its last such event.
        let flying: HashSet<OutboxId> = self.attempts.values().map(|flight| flight.id).collect();
        for id in self.window.last_partly_done(shard, &flying) {
            self.dispatch(now, id);
        }
        let mut keys: Vec<LaneKey> =
            self.lanes.iter().filter(|(_, lane)| lane.shard == shard).map(|(key, _)| *key).collect();
        keys.sort_unstable();
        for key in keys {
            self.leave_queue(key);
        }
        self.window.stop_refilling(shard);
    }

    /// Takes everything but the attempt in flight out of a lane; the next owner will read it where it is stored.
    fn leave_queue(&mut self, key: LaneKey) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let flying = usize::from(lane.in_flight.is_some());
        let waiting = lane.queue.split_off(flying);
        self.destinations[key.destination].queued -= waiting.len();
        for id in waiting {
            if self.window.get(id).is_some_and(|held| held.on_todo) {
                self.window.forget(id);
            } else {
                self.window.forget_delivery(key.destination, id);
            }
        }
        self.leave_lane(key);
    }

    /// Terms that were drained, everything of theirs confirmed: to be handed back to the store. They are forgotten here.
    pub fn take_drained(&mut self) -> Vec<Term> {
        let busy = |shard: Shard| {
            self.lanes.values().any(|lane| lane.shard == shard && lane.in_flight.is_some())
                || self.settling.holds(shard)
        };
        let drained: Vec<Term> = self
            .shards
            .iter()
            .filter(|(shard, slot)| slot.draining && !busy(**shard))
            .map(|(&shard, slot)| Term { shard, epoch: slot.epoch })
            .collect();
        for term in &drained {
            self.lose(term.shard);
        }
        drained
    }
}
