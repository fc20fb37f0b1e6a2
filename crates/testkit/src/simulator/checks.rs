//! What is checked while a world runs, and at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use postbox_core::delivery::DeliveryState;
use postbox_core::destination::Ordering;
use postbox_core::event::{Event, LaneId, OutboxId};

use super::store::SimStore;

/// The aggregate that hot events belong to.
pub(super) const HOT_LANE: LaneId = 1;

type DeliveryKey = (usize, OutboxId);

/// Everything that was seen from outside: which attempts started and which were confirmed.
#[derive(Debug, Default)]
pub(super) struct Witness {
    started: BTreeMap<DeliveryKey, u32>,
    confirmed: BTreeSet<DeliveryKey>,
    /// Confirmations after which nothing was sent again. A repeat may itself need several attempts and counts once.
    unrepeated: BTreeSet<DeliveryKey>,
    /// Attempts started after a confirmation that some relay had taken in.
    pub repeats: u64,
    /// Attempts that may be repeated: in flight or not yet settled when their relay died or lost its lease.
    pub excused: u64,
    /// Per lane, what is routed to it and committed, in order.
    lanes: BTreeMap<(usize, LaneId), Vec<OutboxId>>,
    replayed: BTreeSet<DeliveryKey>,
    given_up: BTreeSet<DeliveryKey>,
    /// What a destination really has.
    received: BTreeSet<DeliveryKey>,
    committed_at: BTreeMap<OutboxId, (Duration, LaneId)>,
    /// Longest time from commit to confirmation, by destination and whether it was the hot lane.
    pub(super) longest_wait: BTreeMap<(usize, bool), Duration>,
    repeated: BTreeSet<DeliveryKey>,
    /// Attempts that were committed before they were made.
    begun: BTreeSet<(usize, OutboxId, u32)>,
    /// How often that happened.
    beginnings: BTreeMap<DeliveryKey, u32>,
    /// What arrived at a destination that cannot recognise repeats, since an operator last had it sent again.
    messages: BTreeSet<DeliveryKey>,
    /// Destinations that did not exist for a while: some events were never routed there.
    removed: BTreeSet<usize>,
}

impl Witness {
    /// An event committed that is routed to these destinations.
    pub(super) fn committed(&mut self, now: Duration, event: &Event, destinations: &[usize]) {
        self.committed_at.insert(event.id, (now, event.lane_id));
        for &destination in destinations {
            let lane = self.lanes.entry((destination, event.lane_id)).or_default();
            lane.push(event.id);
            lane.sort_unstable();
        }
    }

    /// An attempt starts. Checks P2 (no phantom) and P3 (lane order).
    ///
    /// # Errors
    /// What is broken, in one line.
    pub(super) fn starts(
        &mut self,
        store: &SimStore,
        names: &[Arc<str>],
        (destination, ordering): (usize, Ordering),
        event: &Event,
    ) -> Result<(), String> {
        let key = (destination, event.id);
        if !store.is_committed(event.id) {
            return Err(format!("P2: event {} was sent but never committed", event.id));
        }
        if self.unrepeated.remove(&key) && !self.replayed.contains(&key) {
            self.repeats += 1;
            self.repeated.insert(key);
        }
        let first = !self.started.contains_key(&key);
        *self.started.entry(key).or_insert(0) += 1;
        if !first || ordering == Ordering::None {
            return Ok(());
        }
        let lane = self.lanes.get(&(destination, event.lane_id)).map(Vec::as_slice).unwrap_or_default();
        for &earlier in lane.iter().take_while(|&&id| id < event.id) {
            let row = store.deliveries.get(&(earlier, Arc::clone(&names[destination])));
            let terminal = row.is_some_and(|row| !row.state.is_unfinished());
            let known = self.received.contains(&(destination, earlier))
                || self.given_up.contains(&(destination, earlier));
            let unrouted = row.is_none() && self.removed.contains(&destination);
            if !terminal && !known && !unrouted {
                return Err(format!(
                    "P3: destination {destination}, lane {}: event {} was sent before {earlier} was delivered or terminal",
                    event.lane_id, event.id
                ));
            }
        }
        Ok(())
    }

    /// An attempt was committed before it is made.
    pub(super) fn begun(&mut self, destination: usize, id: OutboxId, attempt: u32) {
        self.begun.insert((destination, id, attempt));
        *self.beginnings.entry((destination, id)).or_insert(0) += 1;
    }

    /// Whether an attempt was committed; it counts for one request.
    pub(super) fn was_begun(&mut self, destination: usize, id: OutboxId, attempt: u32) -> bool {
        self.begun.remove(&(destination, id, attempt))
    }

    /// Something arrived at a destination that cannot recognise repeats; `false` when it had it already.
    pub(super) fn message(&mut self, destination: usize, id: OutboxId) -> bool {
        self.messages.insert((destination, id))
    }

    /// A destination was removed.
    pub(super) fn removed(&mut self, destination: usize) {
        self.removed.insert(destination);
    }

    /// A relay took in that an attempt was confirmed.
    pub(super) fn confirmed(&mut self, now: Duration, destination: usize, id: OutboxId) {
        if let Some(&(since, lane_id)) = self.committed_at.get(&id) {
            let wait = self.longest_wait.entry((destination, lane_id == HOT_LANE)).or_default();
            *wait = (*wait).max(now.saturating_sub(since));
        }
        self.confirmed.insert((destination, id));
        self.unrepeated.insert((destination, id));
        self.replayed.remove(&(destination, id));
    }

    /// Attempts that started.
    pub(super) fn attempts(&self) -> u64 {
        self.started.values().map(|&count| u64::from(count)).sum()
    }

    /// A destination took an event in and said so.
    pub(super) fn received(&mut self, destination: usize, id: OutboxId) {
        self.received.insert((destination, id));
    }

    /// A relay decided to give a delivery up; it may not be recorded yet.
    pub(super) fn given_up(&mut self, destination: usize, id: OutboxId) {
        self.given_up.insert((destination, id));
    }

    /// An operator had a delivery sent again.
    pub(super) fn replayed(&mut self, destination: usize, id: OutboxId) {
        self.replayed.insert((destination, id));
        self.messages.remove(&(destination, id));
    }

    /// Checks P4 (honest attempts) on what is stored.
    ///
    /// # Errors
    /// What is broken, in one line.
    pub(super) fn attempts_are_honest(&self, store: &SimStore, names: &[Arc<str>]) -> Result<(), String> {
        for ((id, name), row) in &store.deliveries {
            let Some(destination) = names.iter().position(|other| other == name) else { continue };
            let key = (destination, *id);
            // Of one that was committed and then not heard of, nobody knows whether it was made.
            let started = self.started.get(&key).or(self.beginnings.get(&key)).copied().unwrap_or(0);
            let started = started.max(self.beginnings.get(&key).copied().unwrap_or(0));
            if row.attempts > started {
                return Err(format!(
                    "P4: event {id} at {name}: {} attempts recorded, {started} made",
                    row.attempts
                ));
            }
            if row.state == DeliveryState::Dead && started == 0 {
                return Err(format!("P4: event {id} at {name} was given up untried"));
            }
            if row.state == DeliveryState::Delivered && !self.received.contains(&(destination, *id)) {
                return Err(format!(
                    "P8: event {id} at {name} is recorded as delivered but was never confirmed"
                ));
            }
        }
        Ok(())
    }

    /// Checks the lanes as stored: exactly one head each, and it is the first.
    ///
    /// # Errors
    /// What is broken, in one line.
    pub(super) fn heads_are_first(store: &SimStore) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for ((id, name), row) in &store.deliveries {
            if !row.state.is_unfinished() {
                continue;
            }
            let first = seen.insert((Arc::clone(name), row.lane_id));
            if first == (row.state == DeliveryState::Waiting) {
                return Err(format!(
                    "heads: event {id} at {name} is {} (first: {first})",
                    row.state.as_str()
                ));
            }
        }
        Ok(())
    }

    /// The ledger at the end: P1 (no loss) and P5 (bounded duplicates).
    ///
    /// # Errors
    /// What is missing or too much, in one line.
    pub(super) fn ledger(&self, store: &SimStore, names: &[Arc<str>]) -> Result<(), String> {
        for ((destination, lane_id), ids) in &self.lanes {
            for id in ids {
                let row = store.deliveries.get(&(*id, Arc::clone(&names[*destination])));
                let unrouted = row.is_none() && self.removed.contains(destination) && !store.is_pending(*id);
                if row.is_none_or(|row| row.state.is_unfinished()) && !unrouted {
                    let state = row.map_or("without a row", |row| row.state.as_str());
                    return Err(format!(
                        "P1: event {id} of lane {lane_id} at destination {destination} ends {state}"
                    ));
                }
            }
        }
        if self.repeats > self.excused {
            return Err(format!(
                "P5: {} repeats, only {} have an excuse; repeated (destination, event): {:?}",
                self.repeats, self.excused, self.repeated
            ));
        }
        Ok(())
    }
}
