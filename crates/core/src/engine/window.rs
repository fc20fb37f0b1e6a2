//! The window: events in memory, and the aggregates they belong to.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::Moment;
use super::settling::Trail;
use crate::delivery::DeliveryRecord;
use crate::event::{Event, LaneId, OutboxId, Shard};
use crate::retry::Tries;

/// One delivery of an event in memory.
#[derive(Debug)]
pub(super) struct HeldDelivery {
    /// The destination's number in the engine.
    pub(super) destination: usize,
    /// Number of the lane in which it stands.
    pub(super) lane_id: LaneId,
    /// Requests started since the event was written or last replayed.
    pub(super) attempts: u32,
    /// Those of them that do not count against the attempts allowed.
    pub(super) uncounted: u32,
    pub(super) replay: bool,
    pub(super) maybe_delivered: bool,
    /// Not before then.
    pub(super) ready_at: Moment,
    /// For an event on the to-do list: what is to be recorded once the event leaves it.
    pub(super) done: Option<DeliveryRecord>,
    /// For an event off the to-do list: the buffer into which its parked row was put (0: long ago).
    pub(super) stored_in: u64,
}

/// An event in memory.
#[derive(Debug)]
pub(super) struct HeldEvent {
    pub(super) event: Arc<Event>,
    /// Not after then.
    pub(super) expires_at: Option<Moment>,
    /// The event is on the to-do list, and will be until a settle takes it off.
    pub(super) on_todo: bool,
    /// Deliveries that are not recorded yet.
    pub(super) deliveries: Vec<HeldDelivery>,
}

impl HeldDelivery {
    pub(super) fn tries(&self) -> Tries {
        Tries { attempts: self.attempts, uncounted: self.uncounted }
    }
}

impl HeldEvent {
    pub(super) fn delivery(&self, destination: usize) -> Option<&HeldDelivery> {
        self.deliveries.iter().find(|delivery| delivery.destination == destination)
    }

    pub(super) fn delivery_mut(&mut self, destination: usize) -> Option<&mut HeldDelivery> {
        self.deliveries.iter_mut().find(|delivery| delivery.destination == destination)
    }

    /// Every delivery came to an end that no later event has to wait for.
    pub(super) fn is_terminal(&self) -> bool {
        self.deliveries.iter().all(|d| d.done.as_ref().is_some_and(|record| !record.state.is_unfinished()))
    }
}

/// What the window knows of an aggregate.
#[derive(Debug)]
pub(super) struct Aggregate {
    /// Its events in memory that are on the to-do list, in order.
    pub(super) todo: VecDeque<OutboxId>,
    /// Highest sequence read so far.
    pub(super) last_seq: i64,
    /// There are more on the to-do list than were read; scans leave this aggregate out and it is refilled.
    pub(super) saturated: bool,
    /// Any event of it, for its names.
    pub(super) sample: Arc<Event>,
}

/// Events in memory.
#[derive(Debug, Default)]
pub(super) struct Window {
    events: HashMap<OutboxId, HeldEvent>,
    aggregates: HashMap<LaneId, Aggregate>,
    /// Events whose removal from the to-do list is not confirmed yet, or whose confirmation an unanswered read may not
    /// have seen: a scan may still report them.
    ghosts: HashSet<OutboxId>,
    /// The same for parked deliveries and reads of what is due.
    delivery_ghosts: HashSet<(usize, OutboxId)>,
}

impl Window {
    pub(super) fn len(&self) -> usize {
        self.events.len() + self.ghosts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.ghosts.is_empty() && self.aggregates.is_empty()
    }

    /// Whether a row of the to-do list with this id is no news.
    pub(super) fn knows(&self, id: OutboxId) -> bool {
        self.ghosts.contains(&id) || self.events.get(&id).is_some_and(|held| held.on_todo)
    }

    /// Whether this delivery is in memory.
    pub(super) fn holds_delivery(&self, destination: usize, id: OutboxId) -> bool {
        self.events.get(&id).is_some_and(|held| held.delivery(destination).is_some())
    }

    /// Whether a read may have seen this delivery as it was before a record that we made.
    pub(super) fn is_haunted(&self, destination: usize, id: OutboxId) -> bool {
        self.delivery_ghosts.contains(&(destination, id))
    }

    pub(super) fn get(&self, id: OutboxId) -> Option<&HeldEvent> {
        self.events.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: OutboxId) -> Option<&mut HeldEvent> {
        self.events.get_mut(&id)
    }

    /// Takes an event of the to-do list in. Events of one aggregate come in order.
    pub(super) fn insert_todo(&mut self, held: HeldEvent) {
        let event = Arc::clone(&held.event);
        let aggregate = self.aggregate_of(&event);
        let place = aggregate.todo.iter().rposition(|&other| other < event.id).map_or(0, |n| n + 1);
        aggregate.todo.insert(place, event.id);
        self.events.insert(event.id, held);
    }

    /// Takes one parked delivery of an event in.
    pub(super) fn insert_parked(
        &mut self,
        event: &Arc<Event>,
        expires_at: Option<Moment>,
        delivery: HeldDelivery,
    ) {
        let held = self.events.entry(event.id).or_insert_with(|| HeldEvent {
            event: Arc::clone(event),
            expires_at,
            on_todo: false,
            deliveries: Vec::with_capacity(1),
        });
        held.deliveries.push(delivery);
    }

    /// Earlier events of the same aggregate that are on the to-do list, in order.
    pub(super) fn earlier_todo(&self, id: OutboxId, lane_id: LaneId) -> Vec<OutboxId> {
        let todo = self.aggregates.get(&lane_id).map(|aggregate| &aggregate.todo);
        todo.into_iter().flatten().copied().take_while(|&other| other < id).collect()
    }

    /// The event leaves the to-do list (the record of it is on its way).
    pub(super) fn leave_todo(&mut self, id: OutboxId) {
        if let Some(held) = self.events.get_mut(&id) {
            held.on_todo = false;
            let lane_id = held.event.lane_id;
            self.forget_todo(id, lane_id);
        }
        self.ghosts.insert(id);
    }

    fn forget_todo(&mut self, id: OutboxId, lane_id: LaneId) {
        if let Some(aggregate) = self.aggregates.get_mut(&lane_id) {
            if aggregate.todo.front() == Some(&id) {
                aggregate.todo.pop_front();
            } else {
                aggregate.todo.retain(|&other| other != id);
            }
            if aggregate.todo.is_empty() && !aggregate.saturated {
                self.aggregates.remove(&lane_id);
            }
        }
    }

    /// Forgets one delivery; and the event with it when that was the last and it is off the to-do list.
    pub(super) fn forget_delivery(&mut self, destination: usize, id: OutboxId) {
        if let Some(held) = self.events.get_mut(&id) {
            held.deliveries.retain(|delivery| delivery.destination != destination);
            if held.deliveries.is_empty() && !held.on_todo {
                self.events.remove(&id);
            }
        }
    }

    /// Drops an event that has nothing left to be done, or that shall be read again later.
    pub(super) fn forget(&mut self, id: OutboxId) {
        if let Some(held) = self.events.remove(&id)
            && held.on_todo
        {
            self.forget_todo(id, held.event.lane_id);
        }
    }

    /// Ids of all events of a shard, in order.
    pub(super) fn of_shard(&self, shard: Shard) -> Vec<OutboxId> {
        let mut ids: Vec<_> =
            self.events.values().filter(|h| h.event.shard == shard).map(|h| h.event.id).collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn haunt(&mut self, destination: usize, id: OutboxId) {
        self.delivery_ghosts.insert((destination, id));
    }

    /// Whatever is read from now on knows of these.
    pub(super) fn lay(&mut self, trail: &Trail) {
        for (_, id) in &trail.events {
            self.ghosts.remove(id);
        }
        for &(_, destination, id) in &trail.deliveries {
            self.delivery_ghosts.remove(&(destination, id));
        }
    }

    /// There is more of this aggregate than was read. `last` is the last event that was, which may be parked by now.
    pub(super) fn saturate(&mut self, lane_id: LaneId, last: Option<&Arc<Event>>) {
        if let Some(last) = last {
            self.aggregate_of(last);
        }
        if let Some(aggregate) = self.aggregates.get_mut(&lane_id) {
            aggregate.saturated = true;
        }
    }

    fn aggregate_of(&mut self, event: &Arc<Event>) -> &mut Aggregate {
        let aggregate = self.aggregates.entry(event.lane_id).or_insert_with(|| Aggregate {
            todo: VecDeque::new(),
            last_seq: 0,
            saturated: false,
            sample: Arc::clone(event),
        });
        aggregate.last_seq = aggregate.last_seq.max(event.aggregate_seq);
        aggregate
    }

    /// Everything of this aggregate was read.
    pub(super) fn desaturate(&mut self, lane_id: LaneId) {
        if let Some(aggregate) = self.aggregates.get_mut(&lane_id) {
            aggregate.saturated = false;
            if aggregate.todo.is_empty() {
                self.aggregates.remove(&lane_id);
            }
        }
    }

    pub(super) fn is_saturated(&self, lane_id: LaneId) -> bool {
        self.aggregates.get(&lane_id).is_some_and(|aggregate| aggregate.saturated)
    }

    /// Aggregates with more on the to-do list than was read, by number.
    pub(super) fn saturated(&self) -> Vec<LaneId> {
        let mut lanes: Vec<_> =
            self.aggregates.iter().filter(|(_, a)| a.saturated).map(|(id, _)| *id).collect();
        lanes.sort_unstable();
        lanes
    }

    /// The saturated aggregate of the lowest number that has at most `low` events left in memory.
    pub(super) fn to_refill(&self, low: usize) -> Option<(LaneId, &Aggregate)> {
        self.aggregates
            .iter()
            .filter(|(_, aggregate)| aggregate.saturated && aggregate.todo.len() <= low)
            .min_by_key(|(lane_id, _)| **lane_id)
            .map(|(lane_id, aggregate)| (*lane_id, aggregate))
    }

    /// Per aggregate of a shard, the last event on the to-do list that has several destinations of which one is done
    /// or in flight.
    pub(super) fn last_partly_done(&self, shard: Shard, flying: &HashSet<OutboxId>) -> Vec<OutboxId> {
        let partly_done = |id: &OutboxId| {
            self.events.get(id).is_some_and(|held| {
                held.deliveries.len() > 1
                    && (flying.contains(id) || held.deliveries.iter().any(|delivery| delivery.done.is_some()))
            })
        };
        let of_shard = self.aggregates.values().filter(|aggregate| aggregate.sample.shard == shard);
        let mut last: Vec<_> =
            of_shard.filter_map(|a| a.todo.iter().rev().copied().find(partly_done)).collect();
        last.sort_unstable();
        last
    }

    /// Stops refilling the aggregates of a shard.
    pub(super) fn stop_refilling(&mut self, shard: Shard) {
        for aggregate in self.aggregates.values_mut().filter(|aggregate| aggregate.sample.shard == shard) {
            aggregate.saturated = false;
        }
        self.aggregates.retain(|_, aggregate| aggregate.sample.shard != shard || !aggregate.todo.is_empty());
    }

    /// Forgets every aggregate of a shard, saturated ones too.
    pub(super) fn forget_aggregates(&mut self, shard: Shard) {
        self.aggregates.retain(|_, aggregate| aggregate.sample.shard != shard);
    }
}
