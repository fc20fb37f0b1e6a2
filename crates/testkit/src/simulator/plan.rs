//! What happens in a simulated world: everything is derived from one seed.

use std::time::Duration;

use postbox_core::destination::{BreakerPolicy, RateLimit, WithoutEvidence};
use postbox_core::engine::Limits;
use postbox_core::engine::fault::Fault;
use postbox_core::retry::{OnExhausted, RetryPolicy};

use super::random::Random;

/// The knobs of one world.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Decides everything that is left open here.
    pub seed: u64,
    /// Relays that share the work.
    pub relays: usize,
    /// Events that producers try to write.
    pub events: usize,
    /// Aggregates they belong to.
    pub aggregates: usize,
    /// Destinations; every second event type goes to all of them.
    pub destinations: usize,
    /// How long the troubles last, in milliseconds; afterwards everything works.
    pub troubled_ms: u64,
    /// Of a thousand producer transactions, how many roll back.
    pub rollback: u64,
    /// Of a thousand producer transactions, how many stay open for long and commit late.
    pub late_commit: u64,
    /// Of a thousand calls to the database, how many fail before anything was done.
    pub call_fails: u64,
    /// Of a thousand calls to the database, how many are done and lose their answer.
    pub answer_lost: u64,
    /// Of a thousand attempts, how many fail without reaching the receiver.
    pub attempt_fails: u64,
    /// Of a thousand attempts, how many reach the receiver and lose the answer.
    pub attempt_unknown: u64,
    /// Of a thousand events, how many the receiver always refuses.
    pub poison: u64,
    /// Whether destination 0 never answers anything but failures while the troubles last.
    pub first_destination_dead: bool,
    /// Whether destination 0 takes nearly the whole time of an attempt to answer.
    pub first_destination_slow: bool,
    /// Of a thousand events, how many belong to one hot aggregate.
    pub hot: u64,
    /// Crashes of relays.
    pub crashes: usize,
    /// Pauses of relays, some of them longer than the lease.
    pub pauses: usize,
    /// Orderly restarts of relays.
    pub restarts: usize,
    /// Times at which the database is away for a while.
    pub outages: usize,
    /// Dead letters replayed by an operator.
    pub replays: usize,
    /// Bounds of the engines: small, so that they are reached.
    pub limits: Limits,
    /// Retry policy of all destinations.
    pub retry: RetryPolicy,
    /// Of a thousand attempts, how many cannot be started.
    pub not_started: u64,
    /// Attempts in flight per destination.
    pub concurrency: usize,
    /// Breaker of all destinations.
    pub breaker: Option<BreakerPolicy>,
    /// Rate limit of all destinations.
    pub rate: Option<RateLimit>,
    /// Rate limit of all lanes.
    pub lane_rate: Option<RateLimit>,
    /// Whether the last destination cannot recognise repeats and may tell later what it has, and what is done without.
    pub evidence: Option<WithoutEvidence>,
    /// Of a thousand events that such a destination has, of how many it tells, soon or late.
    pub told: u64,
    /// Of a thousand attempts, how many are refused by a limit.
    pub throttled: u64,
    /// Whether the last destination keeps no order.
    pub unordered: bool,
    /// Times at which a destination is disabled, removed, or brought back.
    pub changes: usize,
    /// Of a thousand attempts, how many are answered with "gone".
    pub gone: u64,
    /// A mistake planted in the engines.
    pub fault: Option<Fault>,
    /// A mistake planted around them.
    pub seam_fault: Option<SeamFault>,
}

/// Mistakes of a store, a lease protocol or a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeamFault {
    /// Settles are not fenced: whoever comes late overwrites.
    NoFencing,
    /// Every relay works on every shard, as relays that claim rows do.
    EveryoneOwnsEverything,
    /// An attempt counts as delivered when it is started.
    SettleBeforeConfirm,
    /// A timeout counts as delivered.
    UnknownIsDelivered,
    /// The floor moves past ids whose transactions are still open.
    FloorPassesOpenTransactions,
    /// A settle whose answer was lost is taken for done.
    LostSettleIsDone,
    /// The successor of a finished head is not made head.
    NoNewHead,
    /// A relay that was evicted goes on as if nothing had happened.
    IgnoreEviction,
    /// An attempt is made although it was refused when it was to be recorded.
    IgnoreRefusedBegin,
}

impl SeamFault {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NoFencing,
        Self::EveryoneOwnsEverything,
        Self::SettleBeforeConfirm,
        Self::UnknownIsDelivered,
        Self::FloorPassesOpenTransactions,
        Self::LostSettleIsDone,
        Self::NoNewHead,
        Self::IgnoreEviction,
        Self::IgnoreRefusedBegin,
    ];
}

impl Plan {
    /// A world without any trouble.
    #[must_use]
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            relays: 1,
            events: 60,
            aggregates: 8,
            destinations: 2,
            troubled_ms: 1_000,
            rollback: 0,
            late_commit: 0,
            call_fails: 0,
            answer_lost: 0,
            attempt_fails: 0,
            attempt_unknown: 0,
            poison: 0,
            first_destination_dead: false,
            first_destination_slow: false,
            hot: 0,
            crashes: 0,
            pauses: 0,
            restarts: 0,
            outages: 0,
            replays: 0,
            limits: Limits {
                max_events: 64,
                max_in_flight: 16,
                rows_per_lane: 4,
                settle_records: 6,
                split_after: Duration::from_millis(40),
                poll_interval: Duration::from_millis(50),
                ..Limits::default()
            },
            retry: RetryPolicy {
                attempts: 5,
                delays: [10, 50, 200, 500].map(Duration::from_millis).to_vec(),
                jitter: 0.2,
                on_exhausted: OnExhausted::DeadLetter,
            },
            not_started: 0,
            concurrency: 4,
            breaker: None,
            rate: None,
            lane_rate: None,
            evidence: None,
            told: 0,
            throttled: 0,
            unordered: false,
            changes: 0,
            gone: 0,
            fault: None,
            seam_fault: None,
        }
    }

    /// A world in which everything that can go wrong does, in a mixture that the seed decides.
    #[must_use]
    pub fn troubled(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x005E_ED0F_7120_0B1E);
        let mut sometimes = |most: u64| if random.chance(500) { random.between(0, most) } else { 0 };
        let calm = Self::calm(seed);
        let mut plan = Self {
            rollback: sometimes(300),
            late_commit: sometimes(300),
            call_fails: sometimes(100),
            answer_lost: sometimes(100),
            attempt_fails: sometimes(300),
            attempt_unknown: sometimes(200),
            poison: sometimes(60),
            hot: sometimes(600),
            first_destination_dead: sometimes(9) > 6,
            first_destination_slow: sometimes(9) > 6,
            ..calm
        };
        plan.not_started = if random.chance(300) { random.between(0, 200) } else { 0 };
        plan.relays = random.index(3) + 1;
        plan.events = random.index(90) + 10;
        plan.aggregates = random.index(12) + 1;
        plan.destinations = random.index(3) + 1;
        plan.crashes = random.index(5);
        plan.pauses = random.index(4);
        plan.restarts = random.index(4);
        plan.outages = random.index(3);
        plan.replays = random.index(6);
        plan.concurrency = random.index(6) + 1;
        plan.limits.max_events = random.index(60) + 12;
        plan.limits.rows_per_lane = u32::try_from(random.index(6) + 1).unwrap_or(1);
        plan.limits.settle_records = random.index(12) + 1;
        let mut number = |least: u32, most: u32| {
            u32::try_from(random.between(u64::from(least), u64::from(most))).unwrap_or(most)
        };
        let (consecutive, count, burst) = (number(1, 6), number(30, 330), number(1, 8));
        let of_lane = (number(10, 60), number(1, 4));
        plan.breaker = random.chance(500).then(|| BreakerPolicy {
            consecutive,
            patience: Duration::from_millis(random.between(0, 40)),
            rate: random.chance(500).then_some(0.5),
            minimum: 6,
            window: Duration::from_millis(300),
            cool_down: Duration::from_millis(random.between(5, 60)),
            longest_cool_down: Duration::from_millis(200),
        });
        plan.rate = random.chance(200).then(|| RateLimit { count, per: Duration::from_secs(1), burst });
        plan.unordered = random.chance(200);
        if random.chance(400) {
            let policies = WithoutEvidence::WORDS;
            plan.evidence = Some(policies[random.index(policies.len())].1);
            plan.told = random.between(0, 1_000);
            plan.unordered = false;
        }
        plan.throttled = if random.chance(200) { random.between(0, 60) } else { 0 };
        let of_lane = RateLimit { count: of_lane.0, per: Duration::from_secs(1), burst: of_lane.1 };
        plan.lane_rate = random.chance(150).then_some(of_lane);
        plan.changes = if random.chance(400) { random.index(6) } else { 0 };
        plan.gone = if random.chance(150) { random.between(0, 40) } else { 0 };
        plan
    }
}
