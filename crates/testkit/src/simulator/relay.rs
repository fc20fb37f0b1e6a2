//! A relay in the simulated world: the real engine, with the driver of `postbox-relay` played in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use postbox_core::delivery::{DestinationName, ParkedLane};
use postbox_core::destination::Destination;
use postbox_core::engine::{Answer, AttemptId, Engine, Limits, Moment, Read, Start};
use postbox_core::event::{OutboxId, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term, fair_share};
use postbox_core::outcome::Outcome;
use postbox_core::store::{Arrival, DueRequest, RefillRequest, Scan, SettleBatch, SettleReport};

/// How long a lease lasts in the simulated world.
pub(super) const LEASE_TTL: Duration = Duration::from_millis(600);

/// Longest time of one attempt in the simulated world.
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(150);

/// A call to the database.
#[derive(Debug, Clone)]
pub(super) enum Call {
    /// A read the engine asked for.
    Read(Read),
    /// The second half of a scan.
    Load(Scan, Vec<(Shard, OutboxId)>),
    /// An attempt, decided on at that time of the world, is about to be made.
    Begin(Box<Start>, RelayId, Duration),
    /// Outcomes to record, with the relay's id at that time.
    Settle(SettleBatch, RelayId),
    /// A heartbeat.
    Beat(Heartbeat, bool),
    /// Terms given back.
    HandBack(RelayId, Vec<Term>),
    /// Goodbye.
    Leave(RelayId),
}

/// What comes back to a relay.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    /// Nothing but time passed.
    Woke,
    /// An attempt ended.
    Ended(AttemptId, Outcome),
    /// An attempt that was decided on at that time may be made, or may not.
    Begun(Box<Start>, Duration, bool),
    /// A scan was answered.
    Scanned(Scan),
    /// The second half of a scan was answered.
    Loaded(Scan, Vec<Arrival>),
    /// A refill was answered.
    Refilled(RefillRequest, Vec<Arrival>),
    /// A look at what is due was answered.
    Due(DueRequest, Vec<ParkedLane>),
    /// A read failed.
    ReadFailed,
    /// A settle was answered.
    Settled(SettleReport),
    /// A settle failed or lost its answer.
    SettleFailed(SettleBatch, RelayId),
    /// A heartbeat was answered, with the time at which it was sent.
    Lease(LeaseAnswer, Moment),
    /// A lease call failed or was answered without news.
    LeaseDone,
    /// The destinations as they stand now.
    Destinations(Vec<Destination>),
    /// An operator or supervisor asked for an orderly end.
    Stop,
}

/// What a relay wants done.
#[derive(Debug)]
pub(super) enum Order {
    /// Send a call.
    Call(Call),
    /// Send it after a pause.
    CallIn(Duration, Call),
    /// Start an attempt.
    Start(Start),
    /// Abort attempts.
    Cancel(Vec<AttemptId>),
    /// Disable a destination that is gone.
    Disable(DestinationName),
}

/// One running relay process.
#[derive(Debug)]
pub(super) struct SimRelay {
    /// The real engine.
    pub engine: Engine,
    /// Its identity in the database.
    pub id: RelayId,
    born: Duration,
    joined: bool,
    lease_busy: bool,
    next_beat: Moment,
    stopping: bool,
    left: bool,
    /// Frozen until then; what happens meanwhile waits in `backlog`.
    pub paused_until: Option<Duration>,
    /// Happenings that came while it was frozen.
    pub backlog: VecDeque<Happening>,
    next_id: u128,
    /// Destinations that it may send to, as far as it has heard.
    enabled: Vec<DestinationName>,
    /// A planted mistake.
    pub(super) ignores_eviction: bool,
}

impl SimRelay {
    /// A process started at `born` (world time).
    #[must_use]
    pub(super) fn new(
        born: Duration,
        number: u64,
        limits: Limits,
        destinations: Vec<Destination>,
        seed: u64,
    ) -> Self {
        let first = u128::from(number) << 64;
        Self {
            enabled: enabled(&destinations),
            engine: Engine::new(limits, destinations, seed),
            id: RelayId::from_u128(first),
            born,
            joined: false,
            lease_busy: false,
            next_beat: Moment::ZERO,
            stopping: false,
            left: false,
            paused_until: None,
            backlog: VecDeque::new(),
            next_id: first + 1,
            ignores_eviction: false,
        }
    }

    /// Its own clock.
    #[must_use]
    pub(super) fn clock(&self, world: Duration) -> Moment {
        world.saturating_sub(self.born)
    }

    /// Whether it said goodbye and is gone.
    #[must_use]
    pub(super) fn is_gone(&self) -> bool {
        self.left && !self.lease_busy
    }

    /// Whether it has heard of nothing against sending there.
    #[must_use]
    pub(super) fn may_send_to(&self, name: &DestinationName) -> bool {
        self.enabled.contains(name)
    }

    /// Takes in what happened.
    pub(super) fn take_in(&mut self, world: Duration, happening: Happening) -> Option<Order> {
        let now = self.clock(world);
        match happening {
            // The world decides on those.
            Happening::Woke | Happening::Begun(..) => {}
            Happening::Ended(id, outcome) => self.engine.attempt_ended(now, id, outcome, Duration::ZERO),
            Happening::Scanned(scan) => {
                let unknown = self.engine.unknown(&scan);
                if !unknown.is_empty() {
                    return Some(Order::Call(Call::Load(scan, unknown)));
                }
                self.engine.read_done(now, Answer::Scan(scan, Vec::new()));
            }
            Happening::Loaded(scan, loaded) => self.engine.read_done(now, Answer::Scan(scan, loaded)),
            Happening::Refilled(request, rows) => self.engine.read_done(now, Answer::Refill(request, rows)),
            Happening::Due(request, lanes) => self.engine.read_done(now, Answer::Due(request, lanes)),
            Happening::ReadFailed => self.engine.read_failed(now, Duration::from_millis(20)),
            Happening::Settled(report) => self.engine.settled(now, &report),
            Happening::SettleFailed(batch, id) => {
                return Some(Order::CallIn(Duration::from_millis(20), Call::Settle(batch, id)));
            }
            Happening::Lease(answer, asked) => self.lease_answered(now, answer, asked),
            Happening::LeaseDone => {
                self.lease_busy = false;
                self.next_beat = self.next_beat.min(now + Duration::from_millis(20));
            }
            Happening::Destinations(list) => {
                self.enabled = enabled(&list);
                self.engine.set_destinations(now, list);
            }
            Happening::Stop => {
                self.stopping = true;
                self.engine.drain_all(now);
            }
        }
        None
    }

    fn lease_answered(&mut self, now: Moment, answer: LeaseAnswer, asked: Moment) {
        self.lease_busy = false;
        match answer {
            LeaseAnswer::Held { terms, live } => {
                self.joined = true;
                self.engine.set_terms(now, &terms, asked + LEASE_TTL);
                if self.stopping {
                    self.engine.drain_all(now);
                } else {
                    let surplus = self.engine.working_shards().saturating_sub(fair_share(live));
                    self.engine.drain(now, surplus);
                }
            }
            LeaseAnswer::Evicted if self.ignores_eviction => {
                self.engine.set_terms(now, &self.engine.terms(), asked + LEASE_TTL);
            }
            LeaseAnswer::Evicted => {
                self.engine.set_terms(now, &[], now);
                self.id = RelayId::from_u128(self.next_id);
                self.next_id += 1;
                self.joined = false;
                self.next_beat = now;
            }
        }
    }

    /// What it wants done now.
    pub(super) fn orders(&mut self, world: Duration) -> Vec<Order> {
        let now = self.clock(world);
        let mut orders = Vec::new();
        let cancelled = self.engine.take_cancelled();
        if !cancelled.is_empty() {
            orders.push(Order::Cancel(cancelled));
        }
        orders.extend(self.engine.take_gone().into_iter().map(|(name, _)| Order::Disable(name)));
        while let Some(start) = self.engine.next_start(now) {
            orders.push(Order::Start(start));
        }
        if let Some(batch) = self.engine.next_settle(now) {
            orders.push(Order::Call(Call::Settle(batch, self.id)));
        }
        if let Some(read) = self.engine.next_read(now) {
            orders.push(Order::Call(Call::Read(read)));
        }
        if !self.lease_busy && !self.left {
            let drained = self.engine.take_drained();
            if !drained.is_empty() {
                self.lease_busy = true;
                orders.push(Order::Call(Call::HandBack(self.id, drained)));
            } else if self.stopping && self.engine.terms().is_empty() {
                self.lease_busy = true;
                self.left = true;
                orders.push(Order::Call(Call::Leave(self.id)));
            } else if now >= self.next_beat {
                self.lease_busy = true;
                self.next_beat = now + LEASE_TTL / 3;
                let heartbeat =
                    Heartbeat { accepting: !self.stopping, ..Heartbeat::new(self.id, "", LEASE_TTL) };
                orders.push(Order::Call(Call::Beat(heartbeat, self.joined)));
            }
        }
        orders
    }

    /// When it wants to be woken, in world time.
    #[must_use]
    pub(super) fn next_wake(&self) -> Duration {
        let beat = if self.lease_busy { Moment::MAX } else { self.next_beat };
        let wake = self.engine.next_wake().unwrap_or(Moment::MAX).min(beat);
        self.born.saturating_add(wake)
    }
}

fn enabled(destinations: &[Destination]) -> Vec<DestinationName> {
    let enabled = destinations.iter().filter(|destination| destination.disabled.is_none());
    enabled.map(|destination| destination.name.clone()).collect()
}
