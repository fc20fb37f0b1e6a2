//! The engine: a state machine that decides what is read, sent, settled and parked.
//!
//! It performs no I/O, reads no clock and draws no random number of its own. Its driver (the relay, or the simulator)
//! tells it what happened, together with the time, and asks what to do:
//!
//! | tell | ask |
//! |---|---|
//! | [`Engine::set_terms`]: which shards are ours, until when | [`Engine::next_read`]: what to read from the store |
//! | [`Engine::read_done`], [`Engine::read_failed`] | [`Engine::next_start`]: which attempt to start |
//! | [`Engine::attempt_ended`] | [`Engine::next_settle`]: which outcomes to record |
//! | [`Engine::settled`] | [`Engine::take_cancelled`]: which attempts to abort |
//! | [`Engine::heard_news`] | |
//! | [`Engine::drain`], [`Engine::drain_all`] | [`Engine::take_drained`]: which terms can be handed back |
//! | [`Engine::set_destinations`] | [`Engine::take_gone`]: which destinations are to be disabled |
//! | | [`Engine::next_wake`]: when to ask again at the latest |
//!
//! At most one read and one settle are outstanding. A settle is repeated by the driver until the store answers it.
//!
//! # Lanes
//! A lane is *open* when nothing of it is parked outside of memory: its events come from the to-do list and are
//! attempted one by one. The first failure parks the head and everything behind it and *closes* the lane: what
//! arrives for it is parked too. When its head is due again, its front is read back and worked off; when that is done
//! and confirmed, the lane is forgotten, and what the next read says of it counts.
//!
//! What the engine itself did but a read may not have seen yet is kept in mind (ghosts, closed lanes) until every
//! read that began before the confirmation is answered.

mod breaker;
mod destinations;
mod dispatch;
#[cfg(feature = "planted-faults")]
pub mod fault;
mod feed;
mod gate;
mod lane;
mod limits;
mod pacer;
mod reading;
mod settling;
mod spilling;
mod starting;
mod terms;
mod throttle;
mod window;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

pub use self::limits::Limits;

use self::destinations::Destinations;
use self::dispatch::Disposition;
use self::feed::Feed;
use self::gate::Turn;
use self::lane::{Lane, LaneKey};
use self::settling::Settling;
use self::spilling::Spilling;
use self::terms::ShardSlot;
use self::window::Window;
use crate::delivery::{AttemptFailure, DeliveryState, DestinationName, ParkedLane};
use crate::destination::Destination;
use crate::event::{OutboxId, Shard};
use crate::lease::Term;
use crate::outcome::{FailureClass, Outcome, Scope};
use crate::retry::{Decision, RetryPolicy, Tries};
use crate::sink::Attempt;
use crate::store::{
    Arrival, Beginning, DueRequest, RefillRequest, Scan, ScanRequest, SettleBatch, SettleReport,
};

/// Time since the driver's own beginning, on a clock that never goes back.
pub type Moment = Duration;

/// How soon an attempt that could not be started for a reason on our side is tried again.
const NOT_STARTED_PAUSE: Duration = Duration::from_secs(1);

/// Names one attempt while it is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(pub u64);

/// An attempt to be started.
#[derive(Debug, Clone)]
pub struct Start {
    /// To be named when it ends.
    pub id: AttemptId,
    /// The destination's number: its place in the list that the engine was made with, then in the order of coming.
    pub destination: usize,
    /// Its name.
    pub name: DestinationName,
    /// The attempt. The payload of its event may be deferred: the driver reads it first.
    pub attempt: Attempt,
    /// To be committed ([`crate::store::Store::begin`]) before the request is written; if that is refused or fails, the
    /// attempt ends as [`Outcome::NotStarted`].
    pub beginning: Option<Beginning>,
}

/// What to read from the store.
#[derive(Debug, Clone)]
pub enum Read {
    /// Scan the to-do list; then load what [`Engine::unknown`] names.
    Scan(ScanRequest),
    /// Read more of one busy aggregate.
    Refill(RefillRequest),
    /// Read lanes that are due.
    Due(DueRequest),
}

/// What was read.
#[derive(Debug)]
pub enum Answer {
    /// Of a scan, with the events loaded in addition.
    Scan(Scan, Vec<Arrival>),
    /// Of a refill, with the request.
    Refill(RefillRequest, Vec<Arrival>),
    /// Of a look at what is due, with the request.
    Due(DueRequest, Vec<ParkedLane>),
}

/// What becomes of an event that no route matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unrouted {
    /// It is put aside where an operator sees it, and can be routed later by a replay.
    #[default]
    Park,
    /// It is let go and counted: for endpoints kept as data, where having no subscriber is normal.
    Skip,
}

/// Something that an operator wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The breaker of this destination opened, and why.
    Blocked(DestinationName, String),
    /// Its breaker closed.
    Unblocked(DestinationName),
}

/// What happened since the engine was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Attempts started.
    pub started: u64,
    /// Attempts confirmed.
    pub delivered: u64,
    /// Attempts that failed and will be repeated.
    pub retried: u64,
    /// Deliveries given up.
    pub dead: u64,
    /// Deliveries that hold their lane.
    pub held: u64,
    /// Deliveries past their deadline.
    pub expired: u64,
    /// Events without a route that were put aside.
    pub unrouted: u64,
    /// Events without a route that were let go.
    pub skipped: u64,
    /// Deliveries that were given up because their destination was removed.
    pub discarded: u64,
    /// Terms refused in a settle or lost with the lease.
    pub lease_lost: u64,
    /// Attempts whose outcome came after their term was lost.
    pub orphaned: u64,
}

#[derive(Debug)]
struct InFlight {
    key: LaneKey,
    id: OutboxId,
    bytes: u64,
    /// It was to be committed before its request.
    begun: bool,
}

/// The state machine; see the module's documentation.
#[derive(Debug)]
pub struct Engine {
    limits: Limits,
    unrouted: Unrouted,
    destinations: Destinations,
    shards: BTreeMap<Shard, ShardSlot>,
    lease_until: Moment,
    window: Window,
    lanes: HashMap<LaneKey, Lane>,
    attempts: HashMap<AttemptId, InFlight>,
    last_attempt: u64,
    in_flight_bytes: u64,
    settling: Settling,
    feed: Feed,
    spilling: Spilling,
    /// Events of which one delivery is done, and when to stop waiting for the others; in order of time.
    splits: VecDeque<(Moment, OutboxId)>,
    /// Lanes to be forgotten when the outstanding read is answered.
    retiring: Vec<LaneKey>,
    /// Ghosts to be laid when the outstanding read is answered.
    fading: Vec<settling::Trail>,
    cancelled: Vec<AttemptId>,
    gone: Vec<(DestinationName, String)>,
    notices: Vec<Notice>,
    due_after_settle: bool,
    dice: u64,
    counters: Counters,
    #[cfg(feature = "planted-faults")]
    fault: Option<fault::Fault>,
}

/// Whether the named mistake is planted in this engine.
macro_rules! planted {
    ($engine:expr, $fault:ident) => {{
        #[cfg(feature = "planted-faults")]
        let planted = $engine.fault == Some(crate::engine::fault::Fault::$fault);
        #[cfg(not(feature = "planted-faults"))]
        let planted = false;
        planted
    }};
}
use planted;

impl Engine {
    /// An engine that owns nothing yet. `seed` decides every random choice it will make.
    #[must_use]
    pub fn new(limits: Limits, destinations: Vec<Destination>, seed: u64) -> Self {
        Self {
            limits,
            destinations: Destinations::new(destinations),
            unrouted: Unrouted::default(),
            shards: BTreeMap::new(),
            lease_until: Moment::ZERO,
            window: Window::default(),
            lanes: HashMap::new(),
            attempts: HashMap::new(),
            last_attempt: 0,
            in_flight_bytes: 0,
            settling: Settling::new(),
            feed: Feed::new(),
            spilling: Spilling::default(),
            splits: VecDeque::new(),
            retiring: Vec::new(),
            fading: Vec::new(),
            cancelled: Vec::new(),
            gone: Vec::new(),
            notices: Vec::new(),
            due_after_settle: false,
            dice: seed,
            counters: Counters::default(),
            #[cfg(feature = "planted-faults")]
            fault: None,
        }
    }

    /// Decides what becomes of events that no route matches.
    #[must_use]
    pub fn with_unrouted(mut self, unrouted: Unrouted) -> Self {
        self.unrouted = unrouted;
        self
    }

    /// Plants a mistake.
    #[cfg(feature = "planted-faults")]
    pub fn plant(&mut self, fault: fault::Fault) {
        self.fault = Some(fault);
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Attempts in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.attempts.len()
    }

    /// Events in memory, those not yet confirmed as settled included.
    #[must_use]
    pub fn held_events(&self) -> usize {
        self.window.len()
    }

    /// Nothing is left to be done now: the last reads found nothing, and what is in memory waits for destinations to
    /// which nothing is sent at present.
    #[must_use]
    pub fn is_drained(&self, now: Moment) -> bool {
        if !self.attempts.is_empty() || !self.settling.is_empty() {
            return false;
        }
        // What waits for a blocked destination may fill the window; then nobody else has anything in it.
        let read_up = self.feed.is_clean() || (self.room() == 0 && !self.can_spill(now));
        let shards = self.shards.len();
        let waits = |key: &LaneKey| self.destinations[key.destination].gate.is_stalled(now, shards);
        read_up && (self.window.is_empty() || (!self.lanes.is_empty() && self.lanes.keys().all(waits)))
    }

    /// An attempt ended. Outcomes of attempts that were cancelled are ignored.
    pub fn attempt_ended(&mut self, now: Moment, attempt: AttemptId, outcome: Outcome, took: Duration) {
        let Some(InFlight { key, id, bytes, begun }) = self.attempts.remove(&attempt) else {
            self.counters.orphaned += 1;
            return;
        };
        self.in_flight_bytes -= bytes;
        let in_flight = self.destinations[key.destination].in_flight;
        let outcome = self.destinations[key.destination].spec.treat(outcome);
        let dice = self.roll();
        let flight = (in_flight, AttemptId(self.last_attempt));
        let slot = &mut self.destinations[key.destination];
        if let Some(turn) = slot.gate.ended(now, attempt, &outcome, took, flight, dice) {
            let name = slot.spec.name.clone();
            self.notices.push(match turn {
                Turn::Opened => {
                    Notice::Blocked(name, slot.gate.why_blocked(now, self.shards.len()).unwrap_or_default())
                }
                Turn::Closed => Notice::Unblocked(name),
            });
        }
        if let Outcome::Failed(failure) = &outcome
            && failure.class == FailureClass::Throttled
            && failure.scope == Scope::Account
        {
            self.destinations.pause_account(key.destination, now, failure);
        }
        self.destinations.landed(key.destination);
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.in_flight = None;
            lane.queue.pop_front();
        }
        let withdrawn = begun && matches!(outcome, Outcome::NotStarted(_));
        let disposition = Disposition { withdrawn, ..self.judge(key, id, outcome, took) };
        let blocks = disposition.state.is_unfinished();
        if blocks && let Some(lane) = self.lanes.get_mut(&key) {
            lane.closed = true;
        }
        self.dispose(now, key, id, disposition);
        if blocks {
            self.close_lane(now, key);
            self.leave_lane(key);
        } else {
            self.advance(key);
        }
    }

    /// Counts the attempt and applies the failure policy.
    fn judge(&mut self, key: LaneKey, id: OutboxId, outcome: Outcome, took: Duration) -> Disposition {
        let dice = self.roll();
        let delivery = self.window.get_mut(id).and_then(|held| held.delivery_mut(key.destination));
        let mut tries = Tries::default();
        if let Some(delivery) = delivery
            && (!matches!(outcome, Outcome::NotStarted(_)) || planted!(self, CountUnstarted))
        {
            delivery.attempts += 1;
            if let Outcome::Failed(failure) = &outcome
                && RetryPolicy::is_uncounted(failure.class)
            {
                delivery.uncounted += 1;
            }
            tries = delivery.tries();
        }
        let failure = match outcome {
            Outcome::Delivered(confirmation) => {
                self.counters.delivered += 1;
                return Disposition {
                    status: confirmation.status,
                    external_id: confirmation.external_id,
                    ..Disposition::plain(DeliveryState::Delivered)
                };
            }
            Outcome::NotStarted(_) if self.destinations[key.destination].removed => return self.discard(),
            Outcome::NotStarted(_) => return Disposition::retry_in(NOT_STARTED_PAUSE),
            Outcome::Failed(failure) => failure,
        };
        if matches!(failure.class, FailureClass::Gone | FailureClass::Suspended) {
            self.destinations[key.destination].gate.disable(failure.reason.clone());
            self.gone.push((self.destinations[key.destination].spec.name.clone(), failure.reason.clone()));
        }
        let spec = &self.destinations[key.destination].spec;
        let decision = match spec.evidence.filter(|_| !planted!(self, RetryUnknownBySchedule)) {
            // Counted from its beginning, as in the row of a relay that died meanwhile.
            Some(evidence) if failure.class == FailureClass::Unknown => {
                Decision::RetryIn(evidence.wait.saturating_sub(took))
            }
            _ => spec.retry.decide(&failure, tries, dice),
        };
        let disposition = match decision {
            Decision::RetryIn(_) | Decision::Hold if self.destinations[key.destination].removed => {
                self.discard()
            }
            Decision::RetryIn(delay) => {
                self.counters.retried += 1;
                Disposition::retry_in(delay)
            }
            Decision::DeadLetter => {
                self.counters.dead += 1;
                Disposition::plain(DeliveryState::Dead)
            }
            Decision::Hold => {
                self.counters.held += 1;
                Disposition::plain(DeliveryState::Held)
            }
        };
        Disposition {
            status: failure.status,
            failure: Some(AttemptFailure {
                class: FailureClass::as_str(failure.class),
                reason: failure.reason,
                answer: failure.answer,
                took,
            }),
            ..disposition
        }
    }

    /// A uniform number in 0.0..1.0: SplitMix64, whose whole state is one number.
    fn roll(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.dice;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in an f64")]
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        unit
    }

    /// The outcomes to record now. At most one settle is outstanding: repeat it until it is answered, then tell
    /// [`Engine::settled`].
    pub fn next_settle(&mut self, now: Moment) -> Option<SettleBatch> {
        self.split_slow_events(now);
        let mut batch = self.settling.take(now, self.limits.settle_records, self.limits.settle_delay)?;
        let touched = batch.dispatched.iter().map(|&(shard, _)| shard);
        let mut shards: Vec<Shard> = touched.chain(batch.records.iter().map(|record| record.shard)).collect();
        shards.sort_unstable();
        shards.dedup();
        let term = |shard: Shard| self.shards.get(&shard).map(|slot| Term { shard, epoch: slot.epoch });
        batch.terms = shards.into_iter().filter_map(term).collect();
        Some(batch)
    }

    /// The outstanding settle was answered.
    pub fn settled(&mut self, now: Moment, report: &SettleReport) {
        let trail = self.settling.confirmed();
        self.feed.stirred();
        for &key in &trail.lanes {
            if let Some(lane) = self.lanes.get_mut(&key) {
                lane.unsettled -= 1;
            }
        }
        for &key in &trail.lanes {
            self.leave_lane(key);
        }
        if !trail.deliveries.is_empty() || std::mem::take(&mut self.due_after_settle) {
            self.feed.due_pace.hurry(now);
        }
        if self.feed.is_reading() {
            self.fading.push(trail);
        } else {
            self.window.lay(&trail);
        }
        for term in &report.refused {
            self.counters.lease_lost += 1;
            if self.shards.get(&term.shard).is_some_and(|slot| slot.epoch == term.epoch) {
                self.lose(term.shard);
            }
        }
    }

    /// When something will be due without anything else happening: ask again then.
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        let read = (!self.feed.is_reading() && !self.feed.shards().is_empty() && self.room() > 0)
            .then(|| self.feed.scan_pace.next_at().min(self.feed.due_pace.next_at()));
        let split = self.splits.front().map(|&(at, _)| at);
        let spill =
            if self.feed.is_reading() { None } else { self.spilling.due_at(self.limits.poll_interval) };
        let settle = self.settling.flush_at(self.limits.settle_delay);
        [read, split, spill, settle, self.destinations.next_alarm()].into_iter().flatten().min()
    }
}
