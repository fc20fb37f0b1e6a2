//! The world: one queue of things to come, ordered by time, and everything that happens drawn from one seed.

mod attempts;
mod calls;
mod evidence;
mod roster;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use postbox_core::delivery::DeliveryState;
use postbox_core::engine::AttemptId;
use postbox_core::event::{LaneId, OutboxId};
use postbox_core::lease::RelayId;
use postbox_core::outcome::Outcome;

use super::checks::{HOT_LANE, Witness};
use super::plan::{Plan, SeamFault};
use super::random::Random;
use super::relay::{ATTEMPT_TIMEOUT, Call, Happening, LEASE_TTL, Order, SimRelay};
use super::store::{SimStore, Transaction};
use roster::Standing;

/// Virtual time after the troubles within which everything must have come to its end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Longest time for which a relay is frozen: more than two leases.
const LONGEST_PAUSE: Duration = Duration::from_millis(1_500);

/// Steps of one world at most; more is a livelock.
const MOST_STEPS: u64 = 2_000_000;

/// Something to come.
#[derive(Debug, Clone)]
enum Coming {
    /// A call reaches the database.
    Call {
        relay: usize,
        life: u64,
        call: Call,
        asked: Duration,
    },
    /// Something reaches a relay.
    To {
        relay: usize,
        life: u64,
        happening: Happening,
    },
    /// An attempt reaches its receiver.
    Attempt {
        relay: usize,
        life: u64,
        id: AttemptId,
        destination: usize,
        event: OutboxId,
        number: u32,
    },
    /// A destination tells that it has what an attempt brought.
    Told {
        destination: usize,
        event: OutboxId,
        number: u32,
    },
    /// An operator has everything that is held sent again.
    Tend,
    Wake {
        relay: usize,
        life: u64,
    },
    Begin {
        transaction: Transaction,
    },
    End {
        transaction: Transaction,
        commit: bool,
    },
    Crash {
        relay: usize,
    },
    Boot {
        relay: usize,
    },
    Stop {
        relay: usize,
    },
    Pause {
        relay: usize,
        lasts: Duration,
    },
    Resume {
        relay: usize,
        life: u64,
    },
    Outage {
        lasts: Duration,
    },
    Replay,
    /// A destination stands differently.
    Change {
        destination: usize,
        standing: Standing,
    },
    /// A relay hears of how the destinations stand.
    News {
        relay: usize,
        life: u64,
    },
}

/// A running world.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    random: Random,
    now: Duration,
    store: SimStore,
    witness: Witness,
    names: Vec<Arc<str>>,
    /// By destination.
    roster: Vec<Standing>,
    /// By relay: its life's number, and the process if it is alive.
    relays: Vec<(u64, Option<SimRelay>)>,
    flying: BTreeMap<(usize, AttemptId), (usize, OutboxId)>,
    /// Confirmed outcomes of a relay that are not settled yet, for the excuse of P5.
    unsettled: Vec<BTreeSet<(usize, OutboxId)>>,
    /// When each relay is going to be woken.
    wakes: Vec<Duration>,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    coming: BTreeMap<u64, Coming>,
    last: u64,
    away_until: Duration,
    poisoned: BTreeSet<OutboxId>,
    steps: u64,
    /// `POSTBOX_SIM_TRACE` is set: everything that happens is printed.
    trace: bool,
}

/// What a world came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Events that committed.
    pub events: u64,
    /// Attempts that started.
    pub attempts: u64,
    /// Attempts for something that was already confirmed.
    pub repeats: u64,
    /// Steps taken.
    pub steps: u64,
    /// Virtual milliseconds until everything had come to its end.
    pub millis: u128,
    /// Longest virtual time from commit to confirmation, by destination and whether the event's aggregate is the hot one.
    pub longest_wait: BTreeMap<(usize, bool), Duration>,
}

impl World {
    /// The world that a plan describes.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let names = (0..plan.destinations).map(|n| Arc::from(format!("destination-{n}"))).collect();
        let relays = (0..plan.relays).map(|_| (0, None)).collect();
        let mut world = Self {
            random: Random::new(plan.seed),
            now: Duration::ZERO,
            store: SimStore::new(plan.seam_fault),
            witness: Witness::default(),
            names,
            roster: vec![Standing::Enabled; plan.destinations],
            relays,
            flying: BTreeMap::new(),
            unsettled: vec![BTreeSet::new(); plan.relays],
            wakes: vec![Duration::ZERO; plan.relays],
            queue: BinaryHeap::new(),
            coming: BTreeMap::new(),
            last: 0,
            away_until: Duration::ZERO,
            poisoned: BTreeSet::new(),
            steps: 0,
            trace: std::env::var_os("POSTBOX_SIM_TRACE").is_some(),
            plan,
        };
        world.fill();
        world
    }

    /// Plans everything that comes from outside.
    fn fill(&mut self) {
        let troubled = self.plan.troubled_ms;
        for relay in 0..self.plan.relays {
            let at = self.random.between(0, 50);
            self.at(Duration::from_millis(at), Coming::Boot { relay });
        }
        for transaction in 0..self.plan.events as u64 {
            let at = self.moment(troubled);
            self.at(at, Coming::Begin { transaction });
        }
        for _ in 0..self.plan.crashes {
            let (relay, at, off) = (self.a_relay(), self.moment(troubled), self.random.between(1, 900));
            self.at(at, Coming::Crash { relay });
            self.at(at + Duration::from_millis(off), Coming::Boot { relay });
        }
        for _ in 0..self.plan.restarts {
            let (relay, at, off) = (self.a_relay(), self.moment(troubled), self.random.between(1, 400));
            self.at(at, Coming::Stop { relay });
            self.at(at + Duration::from_millis(off), Coming::Boot { relay });
        }
        for _ in 0..self.plan.pauses {
            let (relay, at) = (self.a_relay(), self.moment(troubled));
            let lasts = LONGEST_PAUSE.mul_f64(self.random.between(1, 1_000) as f64 / 1_000.0);
            self.at(at, Coming::Pause { relay, lasts });
        }
        for _ in 0..self.plan.outages {
            let (at, lasts) = (self.moment(troubled), Duration::from_millis(self.random.between(1, 800)));
            self.at(at, Coming::Outage { lasts });
        }
        for _ in 0..self.plan.replays {
            let at = self.moment(troubled * 2);
            self.at(at, Coming::Replay);
        }
        self.plan_changes();
        self.plan_tending();
        // Whatever died or was stopped is back when the troubles are over.
        for relay in 0..self.plan.relays {
            self.at(Duration::from_millis(troubled * 2) + LONGEST_PAUSE, Coming::Boot { relay });
        }
    }

    fn a_relay(&mut self) -> usize {
        self.random.index(self.plan.relays)
    }

    fn moment(&mut self, within_ms: u64) -> Duration {
        Duration::from_micros(self.random.between(0, within_ms * 1_000))
    }

    fn at(&mut self, at: Duration, coming: Coming) {
        self.last += 1;
        self.coming.insert(self.last, coming);
        self.queue.push(Reverse((at, self.last)));
    }

    fn soon(&mut self, most_us: u64, coming: Coming) {
        let delay = Duration::from_micros(self.random.between(10, most_us));
        self.at(self.now + delay, coming);
    }

    fn troubled(&self) -> bool {
        self.now < Duration::from_millis(self.plan.troubled_ms)
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// The first promise that was broken, in one line.
    pub fn run(mut self) -> Result<Report, String> {
        let limit = Duration::from_millis(self.plan.troubled_ms * 2) + PATIENCE;
        let mut report = Report::default();
        while let Some(Reverse((at, number))) = self.queue.pop() {
            if at > limit {
                break;
            }
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err("livelock: more steps than any world needs".into());
            }
            self.now = self.now.max(at);
            self.store.now = self.now;
            if let Some(coming) = self.coming.remove(&number) {
                if self.trace {
                    println!("{:>12?} {coming:?}", self.now);
                }
                self.step(coming)?;
            }
            if self.is_finished() {
                break;
            }
        }
        self.witness.ledger(&self.store, &self.names).map_err(|broken| self.blame(&broken))?;
        report.events = self.store.committed().count() as u64;
        report.repeats = self.witness.repeats;
        report.attempts = self.witness.attempts();
        report.longest_wait = self.witness.longest_wait;
        report.steps = self.steps;
        report.millis = self.now.as_millis();
        Ok(report)
    }

    fn blame(&self, broken: &str) -> String {
        format!("at {:?}, step {}: {broken}", self.now, self.steps)
    }

    fn is_finished(&self) -> bool {
        let over = self.now > Duration::from_millis(self.plan.troubled_ms * 2) + LONGEST_PAUSE;
        over && self.steps.is_multiple_of(64)
            && self.flying.is_empty()
            && self.unsettled.iter().all(BTreeSet::is_empty)
            && self.witness.ledger(&self.store, &self.names).is_ok()
    }

    fn step(&mut self, coming: Coming) -> Result<(), String> {
        match coming {
            Coming::Call { relay, life, call, asked } => self.call(relay, life, call, asked)?,
            Coming::To { relay, life, happening } => self.tell(relay, life, happening)?,
            Coming::Attempt { relay, life, id, destination, event, number } => {
                self.receive((relay, life), id, destination, (event, number))?;
            }
            Coming::Told { destination, event, number } => self.told(destination, event, number),
            Coming::Tend => self.tend(),
            Coming::Wake { relay, life } => self.tell(relay, life, Happening::Woke)?,
            Coming::Begin { transaction } => self.begin(transaction),
            Coming::End { transaction, commit } => self.end(transaction, commit),
            Coming::Crash { relay } => self.crash(relay),
            Coming::Boot { relay } => self.boot(relay)?,
            Coming::Stop { relay } => {
                let life = self.relays[relay].0;
                self.tell(relay, life, Happening::Stop)?;
            }
            Coming::Pause { relay, lasts } => self.pause(relay, lasts),
            Coming::Resume { relay, life } => self.resume(relay, life)?,
            Coming::Outage { lasts } => self.away_until = self.away_until.max(self.now + lasts),
            Coming::Replay => self.replay(),
            Coming::Change { destination, standing } => self.change(destination, standing),
            Coming::News { relay, life } => self.news(relay, life)?,
        }
        Ok(())
    }

    // Producers

    fn begin(&mut self, transaction: Transaction) {
        let hot = self.random.chance(self.plan.hot);
        let lane = if hot { HOT_LANE } else { 1 + self.random.index(self.plan.aggregates) as LaneId };
        let kind = self.random.index(self.plan.destinations * 2);
        let event_type =
            if kind < self.plan.destinations { format!("only.{kind}") } else { "all".to_owned() };
        let Some(id) = self.store.insert(transaction, lane, &event_type) else {
            // Another transaction holds the aggregate: this one waits for it.
            self.soon(3_000, Coming::Begin { transaction });
            return;
        };
        if self.random.chance(self.plan.poison) {
            self.poisoned.insert(id);
        }
        let commit = !self.random.chance(self.plan.rollback);
        let open = if self.random.chance(self.plan.late_commit) { 400_000 } else { 2_000 };
        self.soon(open, Coming::End { transaction, commit });
    }

    fn end(&mut self, transaction: Transaction, commit: bool) {
        for event in self.store.end(transaction, commit) {
            let only = event.event_type.strip_prefix("only.").and_then(|n| n.parse::<usize>().ok());
            let routed: Vec<usize> = only.map_or_else(|| (0..self.plan.destinations).collect(), |n| vec![n]);
            self.witness.committed(self.now, &event, &routed);
        }
    }

    fn replay(&mut self) {
        let dead = self.store.deliveries.iter().find(|(_, row)| row.state == DeliveryState::Dead);
        if let Some((id, name)) = dead.map(|(key, _)| key.clone())
            && let Some(destination) = self.names.iter().position(|other| *other == name)
        {
            self.witness.replayed(destination, id);
            self.store.replay(id, &name);
        }
    }

    // Relays

    fn boot(&mut self, relay: usize) -> Result<(), String> {
        if self.relays[relay].1.as_ref().is_some_and(|process| !process.is_gone()) {
            return Ok(());
        }
        self.relays[relay].0 += 1;
        let life = self.relays[relay].0;
        let destinations = self.destinations();
        let number = (relay as u64 + 1) * 1_000_000 + life;
        let mut process =
            SimRelay::new(self.now, number, self.plan.limits.clone(), destinations, self.random.bits());
        if let Some(fault) = self.plan.fault {
            process.engine.plant(fault);
        }
        process.ignores_eviction = self.plan.seam_fault == Some(SeamFault::IgnoreEviction);
        self.relays[relay].1 = Some(process);
        self.wakes[relay] = Duration::ZERO;
        self.tell(relay, life, Happening::Woke)
    }

    fn crash(&mut self, relay: usize) {
        if self.relays[relay].1.take().is_some() {
            self.relays[relay].0 += 1;
            self.excuse(relay);
        }
    }

    /// A relay died: what it had in flight or not yet settled may be repeated.
    fn excuse(&mut self, relay: usize) {
        let flying: Vec<_> = self.flying.keys().filter(|(r, _)| *r == relay).copied().collect();
        self.witness.excused += (flying.len() + self.unsettled[relay].len()) as u64;
        self.unsettled[relay].clear();
        for key in flying {
            self.flying.remove(&key);
        }
    }

    fn excuse_evicted(&mut self, evicted: RelayId) {
        let alive =
            |process: &Option<SimRelay>| process.as_ref().is_some_and(|process| process.id == evicted);
        if let Some(relay) = self.relays.iter().position(|(_, process)| alive(process)) {
            let flying = self.flying.keys().filter(|(r, _)| *r == relay).count();
            self.witness.excused += (flying + self.unsettled[relay].len()) as u64;
        }
    }

    fn pause(&mut self, relay: usize, lasts: Duration) {
        let (life, until) = (self.relays[relay].0, self.now + lasts);
        if let Some(process) = &mut self.relays[relay].1
            && process.paused_until.is_none()
        {
            process.paused_until = Some(until);
            self.at(until, Coming::Resume { relay, life });
        }
    }

    fn resume(&mut self, relay: usize, life: u64) -> Result<(), String> {
        let backlog = match &mut self.relays[relay] {
            (current, Some(process)) if *current == life => {
                process.paused_until = None;
                std::mem::take(&mut process.backlog)
            }
            _ => return Ok(()),
        };
        for happening in backlog {
            self.tell(relay, life, happening)?;
        }
        self.tell(relay, life, Happening::Woke)
    }

    fn tell(&mut self, relay: usize, life: u64, happening: Happening) -> Result<(), String> {
        let now = self.now;
        let (current, Some(process)) = &mut self.relays[relay] else { return Ok(()) };
        if *current != life {
            return Ok(());
        }
        if process.paused_until.is_some() {
            if !matches!(happening, Happening::Woke) {
                process.backlog.push_back(happening);
            }
            return Ok(());
        }
        let happening = match happening {
            Happening::Begun(start, decided, granted) => {
                match self.may_send(relay, &start, decided, granted) {
                    None => return Ok(()),
                    Some(true) => return self.send(relay, life, &start),
                    Some(false) => Happening::Ended(start.id, Outcome::NotStarted("simulated".into())),
                }
            }
            happening => happening,
        };
        let failed = self.observe(relay, &happening);
        let Some(process) = &mut self.relays[relay].1 else { return Ok(()) };
        let before = process.engine.counters();
        let first = process.take_in(now, happening);
        let after = process.engine.counters();
        let mut orders = process.orders(now);
        orders.extend(first);
        let (wake, gone) = (process.next_wake(), process.is_gone());
        if let Some((destination, event)) = failed
            && after.dead > before.dead
        {
            self.witness.given_up(destination, event);
        }
        if gone {
            self.relays[relay].1 = None;
            self.relays[relay].0 += 1;
            return Ok(());
        }
        for order in orders {
            self.order(relay, life, order)?;
        }
        let wake = wake.max(now + Duration::from_micros(100));
        if wake < Duration::MAX && (wake < self.wakes[relay] || self.wakes[relay] <= now) {
            self.wakes[relay] = wake;
            self.at(wake, Coming::Wake { relay, life });
        }
        Ok(())
    }

    /// What the outside world can see of what a relay is told; the delivery of an attempt that failed.
    fn observe(&mut self, relay: usize, happening: &Happening) -> Option<(usize, OutboxId)> {
        match happening {
            Happening::Ended(id, outcome) => {
                if let Some((destination, event)) = self.flying.remove(&(relay, *id)) {
                    match outcome {
                        Outcome::Delivered(_) => {
                            self.witness.confirmed(self.now, destination, event);
                            self.unsettled[relay].insert((destination, event));
                        }
                        Outcome::Failed(_) => return Some((destination, event)),
                        Outcome::NotStarted(_) => {}
                    }
                }
            }
            Happening::Settled(_) => {
                let store = &self.store;
                let names = &self.names;
                self.unsettled[relay].retain(|(destination, id)| {
                    let row = store.deliveries.get(&(*id, Arc::clone(&names[*destination])));
                    row.is_none_or(|row| row.state.is_unfinished())
                });
            }
            _ => {}
        }
        None
    }

    fn order(&mut self, relay: usize, life: u64, order: Order) -> Result<(), String> {
        let asked = self.relays[relay].1.as_ref().map_or(Duration::ZERO, |process| process.clock(self.now));
        match order {
            Order::Call(call) => self.soon(2_000, Coming::Call { relay, life, call, asked }),
            Order::CallIn(pause, call) => {
                self.at(self.now + pause, Coming::Call { relay, life, call, asked })
            }
            Order::Start(start) => self.start(relay, life, start)?,
            Order::Disable(name) => self.gone(&name),
            Order::Cancel(ids) => {
                for id in ids {
                    self.flying.remove(&(relay, id));
                }
            }
        }
        Ok(())
    }
}

/// The lease is longer than any attempt and its renewal together.
const _: () = assert!(LEASE_TTL.as_millis() > 2 * ATTEMPT_TIMEOUT.as_millis());
