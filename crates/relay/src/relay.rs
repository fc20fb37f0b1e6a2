//! The main task: owns the engine, linearises everything that happens.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postbox_core::delivery::DestinationName;
use postbox_core::endpoint::EndpointSet;
use postbox_core::engine::{Answer, AttemptId, Engine, Moment, Notice};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, fair_share};
use postbox_core::store::{SettleBatch, Store, StoreError, StoreErrorKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::attempt;
use crate::clerks::{self, Happening, LONGEST_PAUSE, LeaseOrder, ReadOrder};
use crate::config::{Binding, RelayConfig, RelayError, Summary};
use crate::roster::Roster;

/// Time between two looks at the destinations kept as data: what is changed there holds within a second.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Happenings taken in before the engine is asked what to do next.
const HAPPENINGS_PER_TURN: usize = 512;

/// How far a shutdown has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Working,
    /// Attempts in flight are awaited, at most until then.
    Draining {
        until: Instant,
    },
    /// The store is told goodbye, which is not waited for beyond `until`.
    Leaving {
        until: Instant,
    },
    Done,
}

struct Relay {
    config: RelayConfig,
    store: Arc<dyn Store>,
    engine: Engine,
    roster: Roster,
    began: Instant,
    phase: Phase,
    id: RelayId,
    joined: bool,
    next_beat: Instant,
    next_look: Instant,
    lease_busy: bool,
    attempts: HashMap<AttemptId, AbortHandle>,
    abandoned: usize,
    /// What made a single run pointless.
    fatal: Option<StoreError>,
    happenings: UnboundedSender<Happening>,
    reads: UnboundedSender<ReadOrder>,
    settles: UnboundedSender<(SettleBatch, RelayId)>,
    leases: UnboundedSender<LeaseOrder>,
    read_failures: u32,
    settle_failing: bool,
    lease_failing: bool,
    /// No message about news is in the queue.
    untold: Arc<AtomicBool>,
    /// The wake-up failed and that was said.
    deaf: bool,
    look_failing: bool,
}

/// Runs a relay until `shutdown` is cancelled (or, with [`RelayConfig::once`], until nothing is left to do).
///
/// Survives the database going away. Works on a current-thread runtime, which is the fastest for it, and on any other.
///
/// # Errors
/// At the start: when the tables are missing or of another version, the database refuses, or the configuration
/// cannot work. A database that cannot be reached at the start is an error too, so that a wrong URL is noticed.
/// Later only with [`RelayConfig::once`]: when the database refuses what waiting alone does not mend.
pub async fn run(
    config: RelayConfig,
    store: Arc<dyn Store>,
    bindings: Vec<Binding>,
    shutdown: CancellationToken,
) -> Result<Summary, RelayError> {
    config.check(&bindings)?;
    store.check_schema().await?;
    // Before anything is routed: an event whose endpoint is not known yet would count as unrouted.
    let mut roster = Roster::new(bindings, config.endpoints.clone(), config.longest_attempt());
    let destinations = roster.take_over(store.endpoints(roster.version()).await?.unwrap_or_default());
    let (happenings, mut inbox) = unbounded_channel();
    let (reads, read_orders) = unbounded_channel();
    let (settles, settle_orders) = unbounded_channel();
    let (leases, lease_orders) = unbounded_channel();
    tokio::spawn(clerks::read(Arc::clone(&store), read_orders, happenings.clone()));
    tokio::spawn(clerks::settle(Arc::clone(&store), settle_orders, happenings.clone()));
    tokio::spawn(clerks::lease(Arc::clone(&store), lease_orders, happenings.clone()));
    let untold = Arc::new(AtomicBool::new(true));
    let listener = config.wake_up.clone().map(|wake_up| {
        let listening = clerks::listen(wake_up, Arc::clone(&untold), happenings.clone());
        tokio::spawn(listening).abort_handle()
    });
    let began = Instant::now();
    let mut relay = Relay {
        engine: Engine::new(config.limits.clone(), destinations, config.seed).with_unrouted(config.unrouted),
        config,
        store,
        roster,
        began,
        phase: Phase::Working,
        id: Uuid::now_v7(),
        joined: false,
        next_beat: began,
        next_look: began + LOOK_INTERVAL,
        lease_busy: false,
        attempts: HashMap::new(),
        abandoned: 0,
        fatal: None,
        happenings,
        reads,
        settles,
        leases,
        read_failures: 0,
        settle_failing: false,
        lease_failing: false,
        untold,
        deaf: false,
        look_failing: false,
    };
    while relay.phase != Phase::Done {
        relay.work();
        relay.wait(&mut inbox, &shutdown).await;
    }
    if let Some(listener) = listener {
        listener.abort();
    }
    match relay.fatal {
        Some(error) => Err(error.into()),
        None => Ok(Summary {
            counters: relay.engine.counters(),
            abandoned: relay.abandoned,
            blocked: relay.engine.blocked(relay.now()),
        }),
    }
}

impl Relay {
    fn now(&self) -> Moment {
        self.began.elapsed()
    }

    /// Asks the engine what to do and orders it.
    fn work(&mut self) {
        for id in self.engine.take_cancelled() {
            if let Some(handle) = self.attempts.remove(&id) {
                handle.abort();
            }
        }
        for (destination, reason) in self.engine.take_gone() {
            if self.roster.note_gone(&destination, reason) {
                self.next_look = Instant::now();
            }
        }
        for notice in self.engine.take_notices() {
            match notice {
                Notice::Blocked(destination, reason) => {
                    tracing::warn!(%destination, %reason, "nothing is sent there for now");
                }
                Notice::Unblocked(destination) => tracing::info!(%destination, "sending there again"),
            }
        }
        // The time is taken anew for each start: a process that was paused in between must not start anything
        // on a lease that has run out meanwhile.
        while let Some(start) = self.engine.next_start(self.now()) {
            let place = self.roster.place(start.destination);
            let id = start.id;
            let decided = Instant::now();
            let task = tokio::spawn(attempt::make(
                start,
                decided,
                Arc::clone(&place.name),
                self.id,
                Arc::clone(&place.sink),
                Arc::clone(&self.store),
                self.happenings.clone(),
            ));
            self.attempts.insert(id, task.abort_handle());
        }
        let now = self.now();
        if let Some(batch) = self.engine.next_settle(now) {
            self.order_settle(batch);
        }
        if let Some(read) = self.engine.next_read(now) {
            self.order_read(ReadOrder::Read(read));
        }
        // In this order: what a decision to stop has drained is handed back in the same turn.
        self.move_on();
        self.keep_lease();
    }

    // The clerks live as long as their order queues, so sending to them cannot fail.
    fn order_read(&self, order: ReadOrder) {
        let _ = self.reads.send(order);
    }

    fn order_settle(&self, batch: SettleBatch) {
        let _ = self.settles.send((batch, self.id));
    }

    fn order_lease(&mut self, order: LeaseOrder) {
        self.lease_busy = true;
        let _ = self.leases.send(order);
    }

    fn keep_lease(&mut self) {
        if self.lease_busy || matches!(self.phase, Phase::Leaving { .. } | Phase::Done) {
            return;
        }
        // Only while no heartbeat is under way: its answer would still name the terms that are handed back here.
        let drained = self.engine.take_drained();
        if !drained.is_empty() {
            self.order_lease(LeaseOrder::HandBack(self.id, drained));
        } else if Instant::now() >= self.next_beat {
            let heartbeat = Heartbeat {
                relay: self.id,
                label: self.config.label.clone(),
                ttl: self.config.lease_ttl,
                in_flight: u32::try_from(self.engine.in_flight()).unwrap_or(u32::MAX),
                accepting: self.phase == Phase::Working,
                destinations_version: self.roster.version(),
                blocked: self.roster.blocked(&self.engine.blocked(self.now())),
            };
            self.next_beat = Instant::now() + self.config.renewal();
            self.order_lease(LeaseOrder::Beat { heartbeat, joined: self.joined });
        } else if Instant::now() >= self.next_look {
            self.next_look = Instant::now() + LOOK_INTERVAL;
            // First what was found out here, so that what is read afterwards knows of it.
            self.order_lease(match self.roster.next_gone() {
                Some((name, reason)) => LeaseOrder::Disable(name, reason),
                None => LeaseOrder::Look(self.roster.version()),
            });
        }
    }

    /// Moves from working to drained to gone.
    fn move_on(&mut self) {
        match self.phase {
            Phase::Working if self.config.once && self.joined && self.engine.is_drained(self.now()) => {
                self.stop();
            }
            Phase::Draining { until } => {
                let drained = self.engine.terms().is_empty() && !self.lease_busy;
                if drained || Instant::now() >= until {
                    self.abandoned = self.attempts.len();
                    if !drained {
                        tracing::warn!(
                            abandoned = self.abandoned,
                            "drain_timeout has passed: what is in flight or not recorded yet will be sent again"
                        );
                    }
                    self.leave();
                }
            }
            Phase::Leaving { until } if Instant::now() >= until => self.phase = Phase::Done,
            _ => {}
        }
    }

    fn stop(&mut self) {
        if self.phase == Phase::Working {
            tracing::info!(in_flight = self.engine.in_flight(), "stopping: waiting for attempts in flight");
            self.phase = Phase::Draining { until: Instant::now() + self.config.drain_timeout };
            let now = self.now();
            self.engine.drain_all(now);
        }
    }

    /// Aborts what is still in flight and gives the lease back.
    fn leave(&mut self) {
        for (_, handle) in self.attempts.drain() {
            handle.abort();
        }
        self.phase = Phase::Leaving { until: Instant::now() + LONGEST_PAUSE * 2 };
        self.order_lease(LeaseOrder::Leave(self.id));
    }

    /// A relay that runs for ever tries again: somebody may grant the right or migrate meanwhile. A single run ends
    /// with the error.
    fn store_failed(&mut self, error: StoreError) {
        let lasting = match error.kind {
            StoreErrorKind::Denied
            | StoreErrorKind::SchemaMissing
            | StoreErrorKind::SchemaNewer
            | StoreErrorKind::Input
            | StoreErrorKind::Internal => true,
            StoreErrorKind::Unavailable | StoreErrorKind::Conflict => false,
        };
        let leaving = matches!(self.phase, Phase::Leaving { .. } | Phase::Done);
        if self.config.once && lasting && !leaving {
            self.abandoned = self.attempts.len();
            self.fatal = Some(error);
            self.leave();
        }
    }

    /// Waits for something to happen, or for the moment at which the engine wants to be asked again.
    async fn wait(&mut self, inbox: &mut UnboundedReceiver<Happening>, shutdown: &CancellationToken) {
        if self.phase == Phase::Done {
            return;
        }
        let phase_end = match self.phase {
            Phase::Draining { until } | Phase::Leaving { until } => Some(until),
            Phase::Working | Phase::Done => None,
        };
        let beat = (!self.lease_busy).then_some(self.next_beat.min(self.next_look));
        let engine = self.engine.next_wake().map(|moment| self.began + moment);
        let wake = [phase_end, beat, engine].into_iter().flatten().min();
        let wake = wake.unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
        tokio::select! {
            biased;
            happening = inbox.recv() => {
                let mut next = happening;
                for _ in 0..HAPPENINGS_PER_TURN {
                    let Some(happening) = next else { break };
                    self.take_in(happening);
                    next = inbox.try_recv().ok();
                }
                if let Some(happening) = next {
                    self.take_in(happening);
                }
            }
            () = shutdown.cancelled(), if self.phase == Phase::Working => self.stop(),
            () = tokio::time::sleep_until(wake.into()) => {}
        }
    }

    fn take_in(&mut self, happening: Happening) {
        let now = self.now();
        match happening {
            Happening::Ended(id, outcome, took) => {
                self.attempts.remove(&id);
                self.engine.attempt_ended(now, id, outcome, took);
            }
            Happening::Scanned(scan) => {
                let unknown = self.engine.unknown(&scan);
                if unknown.is_empty() {
                    self.read_done(now, Answer::Scan(scan, Vec::new()));
                } else {
                    self.order_read(ReadOrder::Load(scan, unknown));
                }
            }
            Happening::Loaded(scan, loaded) => self.read_done(now, Answer::Scan(scan, loaded)),
            Happening::Refilled(request, arrivals) => self.read_done(now, Answer::Refill(request, arrivals)),
            Happening::Due(request, lanes) => self.read_done(now, Answer::Due(request, lanes)),
            Happening::ReadFailed(error) => self.read_failed(now, error),
            Happening::Settled(report) => {
                if std::mem::take(&mut self.settle_failing) {
                    tracing::info!("outcomes are recorded again");
                }
                for term in &report.refused {
                    tracing::warn!(
                        shard = term.shard,
                        epoch = term.epoch,
                        "lease_lost: a late settle was refused"
                    );
                }
                self.engine.settled(now, &report);
            }
            Happening::SettleFailed(error) => {
                if !std::mem::replace(&mut self.settle_failing, true) {
                    tracing::warn!(error = %chain(&error), "cannot record outcomes; trying until it works");
                }
                self.store_failed(error);
            }
            Happening::Lease(answer, asked) => self.lease_answered(now, answer, asked),
            Happening::HandedBack(result) => {
                self.lease_busy = false;
                if let Err(error) = result {
                    tracing::warn!(error = %chain(&error), "could not hand shards back; they follow with the lease");
                }
            }
            Happening::Looked(news) => self.looked(now, news),
            Happening::Disabled(name, result) => self.disabled(&name, result),
            Happening::Left => self.phase = Phase::Done,
            Happening::Listening => {
                self.deaf = false;
                tracing::info!("listening: new events are heard of as they commit");
                self.engine.heard_news(now);
            }
            Happening::News => {
                // Whatever commits from here on is told again.
                self.untold.store(true, Ordering::Release);
                self.engine.heard_news(now);
            }
            Happening::Deaf(error) => {
                if !std::mem::replace(&mut self.deaf, true) {
                    tracing::warn!(error = %chain(&error), "cannot listen for new events; polling until it works");
                }
            }
        }
    }

    fn read_done(&mut self, now: Moment, answer: Answer) {
        if self.read_failures > 0 {
            tracing::info!(tries = self.read_failures, "the database answers again");
            self.read_failures = 0;
        }
        self.engine.read_done(now, answer);
    }

    fn read_failed(&mut self, now: Moment, error: StoreError) {
        if self.read_failures == 0 {
            tracing::warn!(error = %chain(&error), "cannot read from the database; trying until it works");
        }
        self.read_failures += 1;
        let pause = LONGEST_PAUSE.min(Duration::from_millis(50) * self.read_failures);
        self.engine.read_failed(now, pause);
        self.store_failed(error);
    }

    /// Takes over what has changed, and tells so at once: an operator may wait for it.
    fn looked(&mut self, now: Moment, news: Result<Option<EndpointSet>, StoreError>) {
        self.lease_busy = false;
        match news {
            Ok(news) => {
                if std::mem::take(&mut self.look_failing) {
                    tracing::info!("the destinations can be read again");
                }
                if let Some(set) = news {
                    tracing::info!(
                        version = set.version,
                        endpoints = set.endpoints.len(),
                        "destinations changed"
                    );
                    let destinations = self.roster.take_over(set);
                    self.engine.set_destinations(now, destinations);
                    self.next_beat = Instant::now();
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.look_failing, true) {
                    tracing::warn!(error = %chain(&error), "cannot read the destinations; trying until it works");
                }
                self.store_failed(error);
            }
        }
    }

    fn disabled(&mut self, destination: &DestinationName, result: Result<(), StoreError>) {
        self.lease_busy = false;
        match result {
            Ok(()) => {
                tracing::warn!(%destination, "disabled, as it answered that it is gone; its events are kept");
                self.roster.gone_recorded(destination);
                self.next_look = Instant::now();
            }
            Err(error) => {
                tracing::warn!(%destination, error = %chain(&error), "cannot disable it; trying until it works");
                self.store_failed(error);
            }
        }
    }

    fn lease_answered(&mut self, now: Moment, answer: Result<LeaseAnswer, StoreError>, asked: Instant) {
        self.lease_busy = false;
        match answer {
            Ok(LeaseAnswer::Held { terms, live }) => {
                if std::mem::take(&mut self.lease_failing) || !self.joined {
                    tracing::info!(shards = terms.len(), relays = live, "lease held");
                }
                self.joined = true;
                let until = (asked + self.config.lease_ttl).saturating_duration_since(self.began);
                self.engine.set_terms(now, &terms, until);
                if self.phase == Phase::Working {
                    let surplus = self.engine.working_shards().saturating_sub(fair_share(live));
                    self.engine.drain(now, surplus);
                } else {
                    self.engine.drain_all(now);
                }
            }
            Ok(LeaseAnswer::Evicted) => {
                tracing::warn!("lease_lost: this relay was evicted; joining again under a new id");
                self.engine.set_terms(now, &[], now);
                self.id = Uuid::now_v7();
                self.joined = false;
                self.next_beat = Instant::now();
            }
            Err(error) => {
                if !std::mem::replace(&mut self.lease_failing, true) {
                    tracing::warn!(error = %chain(&error), "cannot renew the lease; trying until it works");
                }
                self.next_beat = Instant::now() + (self.config.lease_ttl / 20).min(LONGEST_PAUSE);
                self.store_failed(error);
            }
        }
    }
}

/// An error with its causes, each once, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let line = inner.to_string();
        if !text.contains(&line) {
            text = format!("{text}: {line}");
        }
        cause = inner.source();
    }
    text
}
