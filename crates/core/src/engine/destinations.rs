//! Destinations in the engine: whose turn it is to start an attempt, and what changes while it runs.
//!
//! A destination stands in the queue of turns only while it has a lane to start, so that the next start costs the same
//! with ten thousand destinations as with one. Whoever cannot start leaves the queue and comes back when that changes:
//! when one of its attempts ends, when its alarm rings, when the lease is renewed.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::{Index, IndexMut};

use super::gate::Gate;
use super::lane::LaneKey;
use super::pacer::LanePacers;
use super::{Engine, Moment, Notice, planted};
use crate::delivery::{AttemptFailure, DeliveryState, DestinationName};
use crate::destination::{Destination, Ordering};
use crate::event::{Event, LaneId};
use crate::outcome::Failure;
use crate::route::StoredHeaders;

/// Destinations asked in one look at what is due, apart from those that lately had something parked. More of them take
/// turns, so that a look costs the database the same with ten thousand endpoints as with a few.
const QUIET_PER_LOOK: usize = 256;

/// Looks at what is due in which a destination counts as lively after something was parked or found.
const LIVELY_LOOKS: u32 = 64;

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) spec: Destination,
    pub(super) gate: Gate,
    pub(super) lane_pacers: LanePacers,
    /// Lanes whose head can start, in the order in which they became so.
    pub(super) ready: VecDeque<LaneKey>,
    pub(super) in_flight: usize,
    /// Deliveries in lanes in memory, without those in flight.
    pub(super) queued: usize,
    /// It does not exist any more; its place is kept for what is in memory, and for when it comes back.
    pub(super) removed: bool,
    /// It stands in the queue of turns.
    in_turn: bool,
    alarm: Option<Moment>,
    /// Looks at what is due for which it is still asked in each.
    lively: u32,
}

impl Slot {
    fn new(spec: Destination) -> Self {
        Self {
            gate: Gate::new(&spec),
            lane_pacers: LanePacers::new(spec.lane_rate),
            spec,
            ready: VecDeque::new(),
            in_flight: 0,
            queued: 0,
            removed: false,
            in_turn: false,
            alarm: None,
            lively: LIVELY_LOOKS,
        }
    }

    /// It could start more than it has.
    pub(super) fn is_hungry(&self, now: Moment) -> bool {
        !self.removed
            && self.queued == 0
            && self.in_flight < self.spec.concurrency
            && !self.gate.is_blocked(now)
    }

    /// Number of the lane in which an event goes there: the aggregate's, or for a destination without order one of the
    /// event's own, which no aggregate has.
    pub(super) fn lane_of(&self, event: &Event) -> LaneId {
        match self.spec.ordering {
            Ordering::Lane => event.lane_id,
            Ordering::None => -event.id,
        }
    }
}

/// All destinations, by number. A number is never given to another name.
#[derive(Debug, Default)]
pub(super) struct Destinations {
    slots: Vec<Slot>,
    by_name: HashMap<DestinationName, usize>,
    /// Destinations for the events of one tenant only.
    by_tenant: HashMap<String, Vec<usize>>,
    /// Destinations for the events of any tenant.
    for_all: Vec<usize>,
    turns: VecDeque<usize>,
    alarms: BTreeSet<(Moment, usize)>,
    /// Destinations that wait for bytes in flight.
    starved: Vec<usize>,
    /// The quiet destination with which the next look at what is due begins.
    next_quiet: usize,
}

impl Index<usize> for Destinations {
    type Output = Slot;

    fn index(&self, number: usize) -> &Slot {
        &self.slots[number]
    }
}

impl IndexMut<usize> for Destinations {
    fn index_mut(&mut self, number: usize) -> &mut Slot {
        &mut self.slots[number]
    }
}

impl Destinations {
    pub(super) fn new(specs: Vec<Destination>) -> Self {
        let mut destinations = Self::default();
        for spec in specs {
            destinations.add(spec);
        }
        destinations.sort_by_tenant();
        destinations
    }

    fn add(&mut self, spec: Destination) {
        self.by_name.insert(spec.name.clone(), self.slots.len());
        self.slots.push(Slot::new(spec));
    }

    fn sort_by_tenant(&mut self) {
        self.by_tenant.clear();
        self.for_all.clear();
        for (number, slot) in self.slots.iter().enumerate().filter(|(_, slot)| !slot.removed) {
            match &slot.spec.route.tenant {
                Some(tenant) => self.by_tenant.entry(tenant.clone()).or_default().push(number),
                None => self.for_all.push(number),
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut()
    }

    /// The number of the destination that has this name now.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied().filter(|&number| !self.slots[number].removed)
    }

    /// Numbers of the destinations that an event goes to, ascending.
    pub(super) fn routed(&self, event: &Event) -> Vec<usize> {
        let headers = StoredHeaders::of(event);
        let tenants = if self.by_tenant.is_empty() { None } else { headers.tenant() };
        let own = tenants.and_then(|tenant| self.by_tenant.get(tenant)).into_iter().flatten();
        let candidates = self.for_all.iter().chain(own).copied();
        let mut routed: Vec<usize> =
            candidates.filter(|&number| self.slots[number].spec.route.matches(event, &headers)).collect();
        routed.sort_unstable();
        routed
    }

    /// It may be able to start something: it gets a turn, unless it waits for one.
    pub(super) fn take_turn(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        if !slot.in_turn && !slot.ready.is_empty() {
            slot.in_turn = true;
            self.turns.push_back(number);
        }
    }

    /// Whose turn it is.
    pub(super) fn next_turn(&mut self) -> Option<usize> {
        let number = self.turns.pop_front()?;
        self.slots[number].in_turn = false;
        Some(number)
    }

    /// It gets its next turn at that time.
    pub(super) fn set_alarm(&mut self, number: usize, at: Moment) {
        if let Some(earlier) = self.slots[number].alarm.replace(at) {
            self.alarms.remove(&(earlier, number));
        }
        self.alarms.insert((at, number));
    }

    pub(super) fn next_alarm(&self) -> Option<Moment> {
        self.alarms.first().map(|&(at, _)| at)
    }

    pub(super) fn ring_alarms(&mut self, now: Moment) {
        while let Some(&(at, number)) = self.alarms.first()
            && at <= now
        {
            self.alarms.pop_first();
            self.slots[number].alarm = None;
            self.take_turn(number);
        }
    }

    /// A limit on the account behind this destination was met: all that share it wait.
    pub(super) fn pause_account(&mut self, number: usize, now: Moment, failure: &Failure) {
        let account = self.slots[number].spec.account.clone();
        let same = |slot: &&mut Slot| account.is_some() && slot.spec.account == account;
        for slot in self.slots.iter_mut().filter(same) {
            slot.gate.pause(now, failure);
        }
    }

    /// It gets its next turn when an attempt of any destination ended.
    pub(super) fn starve(&mut self, number: usize) {
        self.starved.push(number);
    }

    /// An attempt of this destination is not in flight any more.
    pub(super) fn landed(&mut self, number: usize) {
        self.slots[number].in_flight -= 1;
        self.take_turn(number);
        for starved in std::mem::take(&mut self.starved) {
            self.take_turn(starved);
        }
    }

    /// Something changed for all of them.
    pub(super) fn all_take_turns(&mut self) {
        (0..self.slots.len()).for_each(|number| self.take_turn(number));
    }

    /// Something of it was parked, or is due.
    pub(super) fn enliven(&mut self, number: usize) {
        self.slots[number].lively = LIVELY_LOOKS;
    }

    /// The destinations to ask for in a look at what is due: those that can start something and lately had anything
    /// parked, and some of the others in turn (an operator may have put deliveries back).
    pub(super) fn next_look(&mut self, now: Moment) -> Vec<usize> {
        let count = self.slots.len();
        let askable = |slot: &Slot| !slot.removed && !slot.gate.is_blocked(now);
        if count <= QUIET_PER_LOOK {
            return (0..count).filter(|&number| askable(&self.slots[number])).collect();
        }
        let mut chosen = Vec::new();
        let mut quiet = 0;
        let first = self.next_quiet;
        for number in (first..count).chain(0..first) {
            let slot = &mut self.slots[number];
            if !askable(slot) {
                continue;
            }
            if slot.lively > 0 {
                slot.lively -= 1;
                chosen.push(number);
            } else if quiet < QUIET_PER_LOOK {
                quiet += 1;
                self.next_quiet = (number + 1) % count;
                chosen.push(number);
            }
        }
        chosen
    }
}

impl Engine {
    /// Takes over a changed list of destinations; what is not in it any more is removed. The number of a name
    /// ([`super::Start::destination`]) never changes: new names get the next ones, in the order of the list.
    ///
    /// What waits for a removed destination is recorded as discarded with the reason; an attempt in flight is awaited, and
    /// its outcome recorded, but not repeated.
    pub fn set_destinations(&mut self, now: Moment, specs: Vec<Destination>) {
        let mut named = vec![false; self.destinations.len()];
        for mut spec in specs {
            if planted!(self, SendToDisabled) {
                spec.disabled = None;
            }
            match self.destinations.by_name.get(&spec.name).copied() {
                Some(number) => {
                    if let Some(named) = named.get_mut(number) {
                        *named = true;
                    }
                    let slot = &mut self.destinations[number];
                    slot.gate.set(&spec);
                    slot.lane_pacers.set_limit(spec.lane_rate);
                    slot.spec = spec;
                    slot.removed = false;
                }
                None => self.destinations.add(spec),
            }
        }
        for (number, named) in named.into_iter().enumerate() {
            if !named && !self.destinations[number].removed {
                self.remove_destination(now, number);
            }
        }
        self.destinations.sort_by_tenant();
        self.destinations.all_take_turns();
        self.feed.stirred();
        self.feed.due_pace.hurry(now);
    }

    fn remove_destination(&mut self, now: Moment, number: usize) {
        self.destinations[number].removed = true;
        let mut keys: Vec<LaneKey> =
            self.lanes.keys().filter(|key| key.destination == number).copied().collect();
        keys.sort_unstable();
        for key in keys {
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            lane.closed = true;
            lane.ready = false;
            let flying = usize::from(lane.in_flight.is_some());
            for id in lane.queue.split_off(flying) {
                self.destinations[number].queued -= 1;
                let disposition = self.discard();
                self.dispose(now, key, id, disposition);
            }
            self.leave_lane(key);
        }
        self.destinations[number].ready.clear();
    }

    /// What becomes of a delivery whose destination was removed.
    pub(super) fn discard(&mut self) -> super::Disposition {
        self.counters.discarded += 1;
        super::Disposition {
            failure: Some(AttemptFailure {
                class: "removed",
                reason: "the destination was removed".into(),
                answer: None,
                took: std::time::Duration::ZERO,
            }),
            ..super::Disposition::plain(DeliveryState::Discarded)
        }
    }

    /// Destinations that answered that they are gone for good, with the answer, since this was last asked. Nothing is
    /// sent to them until [`Engine::set_destinations`] says otherwise; their events are kept.
    pub fn take_gone(&mut self) -> Vec<(DestinationName, String)> {
        std::mem::take(&mut self.gone)
    }

    /// What an operator wants to hear of, since this was last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Destinations to which nothing is sent at present, and why.
    #[must_use]
    pub fn blocked(&self, now: Moment) -> Vec<(DestinationName, String)> {
        let shards = self.shards.len();
        let living = self.destinations.iter().filter(|slot| !slot.removed);
        living
            .filter_map(|slot| Some((slot.spec.name.clone(), slot.gate.why_blocked(now, shards)?)))
            .collect()
    }
}
