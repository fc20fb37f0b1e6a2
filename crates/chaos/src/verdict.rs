//! The ledger of a run: what was promised, what was kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use postbox_testkit::ledger::{Entry, Ledger, Moment};
use uuid::Uuid;

use crate::audience::is_poison;
use crate::evidence::Evidence;
use crate::exposure::Duplicates;
use crate::performance::Performance;
use crate::shop::Takings;
use crate::tracks::Theatre;

/// Everything a verdict is based on.
pub(crate) struct Case<'a> {
    pub(crate) performance: Performance,
    pub(crate) theatre: &'a Theatre,
    pub(crate) takings: &'a Takings,
    pub(crate) evidence: &'a Evidence,
}

/// What a run came to.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Verdict {
    /// Repeats the plan of troubles.
    pub seed: u64,
    /// How long there was trouble.
    pub trouble_seconds: f64,
    /// What happened, by kind.
    pub troubles: BTreeMap<&'static str, usize>,
    /// Events whose transaction committed.
    pub committed: usize,
    /// Events in transactions and savepoints that were rolled back on purpose.
    pub rolled_back: usize,
    /// Transactions whose producer lost the database and does not know how they ended.
    pub producers_in_doubt: usize,
    /// Requests that the receiver read.
    pub requests: usize,
    /// Attempts that failed, as the relays logged them.
    pub failed_attempts: usize,
    /// Committed events that the receiver confirmed.
    pub delivered: usize,
    /// Dead letters: events that the receiver refused three times.
    pub dead_lettered: usize,
    /// How long the calm took to drain; `None` when it did not.
    pub drained_after_seconds: Option<f64>,
    /// P1: neither confirmed nor dead-lettered.
    pub lost: usize,
    /// P1: deliveries that the database does not hold for finished.
    pub unfinished: usize,
    /// P2: sent, never committed.
    pub phantoms: usize,
    /// P2: in the outbox without its change, or the other way round.
    pub torn: usize,
    /// P3: sent before the event before it was confirmed or given up.
    pub order_violations: usize,
    /// P4: dead-lettered without a request.
    pub dead_lettered_untried: usize,
    /// P4: dead-lettered though the receiver never refused it.
    pub dead_lettered_wrongly: usize,
    /// P5: confirmations beyond the first of their event.
    pub duplicates: usize,
    /// P5: most that lost answers can explain.
    pub bound_of_lost_answers: usize,
    /// P5: most that kills, lost leases and stops cut short can explain.
    pub bound_of_upsets: usize,
    /// P5: most events that were in flight or unsettled at one upset.
    pub largest_exposure: usize,
    /// P5: duplicates that no exposure of their own event explains.
    pub duplicates_unexplained: usize,
    /// Leases that living relays lost.
    pub leases_lost: usize,
    /// Settles of lost terms that were refused (`lease_lost` in the logs), by shard.
    pub settles_refused: usize,
    /// What must not happen whatever the trouble: panics, relays that end by themselves or do not stop.
    pub defects: Vec<String>,
}

impl Verdict {
    pub(crate) fn reach(case: &Case<'_>, drained_after: Option<Duration>) -> Self {
        let Case { performance, theatre, takings, evidence } = case;
        let entries = theatre.audience.entries();
        let dead = evidence.in_state("dead");
        let ledger = Ledger::of(&entries, &evidence.committed, &dead);
        let logbook = theatre.fleet.logbook();
        let berth_of: HashMap<u32, usize> = theatre
            .fleet
            .berths()
            .enumerate()
            .flat_map(|(number, berth)| berth.pids().iter().map(|&pid| (pid, number)).collect::<Vec<_>>())
            .collect();
        let leases = theatre.journal.lost_leases(&evidence.evictions);
        let leases: Vec<_> =
            leases.iter().filter_map(|eviction| Some((*berth_of.get(&eviction.pid)?, eviction.at))).collect();
        let upsets = theatre.journal.upsets(&leases);
        let duplicates =
            Duplicates::add_up(&theatre.audience.sightings(), evidence, &logbook.unknown, &upsets);
        let tried: HashSet<Uuid> = entries.iter().map(|entry| entry.event_id).collect();
        let is_untried = |event: &&Uuid| !tried.contains(event) || evidence.deliveries[event].attempts == 0;
        let mut defects = theatre.journal.defects();
        defects.extend(logbook.defects.iter().cloned());
        Self {
            seed: performance.seed,
            trouble_seconds: performance.lasting.as_secs_f64(),
            troubles: theatre.journal.troubles(),
            committed: evidence.committed.len(),
            rolled_back: takings.rolled_back.load(Ordering::Relaxed),
            producers_in_doubt: takings.in_doubt.load(Ordering::Relaxed),
            requests: ledger.requests,
            failed_attempts: logbook.failed,
            delivered: ledger.delivered,
            dead_lettered: dead.len(),
            drained_after_seconds: drained_after.map(|time| time.as_secs_f64()),
            lost: ledger.lost.len(),
            unfinished: evidence.committed.len()
                - evidence.in_state("delivered").intersection(&evidence.committed).count()
                - dead.intersection(&evidence.committed).count(),
            phantoms: ledger.phantoms.len(),
            torn: evidence.torn,
            order_violations: ledger.order_violations.len() + skipped(&entries),
            dead_lettered_untried: dead.iter().filter(is_untried).count(),
            dead_lettered_wrongly: dead.iter().filter(|event| !is_poison(**event)).count(),
            duplicates: duplicates.count,
            bound_of_lost_answers: duplicates.bound_of_answers,
            bound_of_upsets: duplicates.bound_of_upsets,
            largest_exposure: duplicates.largest_exposure,
            duplicates_unexplained: duplicates.unexplained.len(),
            leases_lost: leases.len(),
            settles_refused: logbook.refused.len(),
            defects,
        }
    }

    /// Most duplicates that P5 allows in this run.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.bound_of_lost_answers + self.bound_of_upsets
    }

    /// Whether everything that was promised was kept.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let broken = self.lost
            + self.unfinished
            + self.phantoms
            + self.torn
            + self.order_violations
            + self.dead_lettered_untried
            + self.dead_lettered_wrongly
            + self.duplicates_unexplained
            + self.defects.len();
        let whole = self.delivered + self.dead_lettered == self.committed;
        broken == 0 && whole && self.duplicates <= self.bound() && self.drained_after_seconds.is_some()
    }
}

/// Events of which the one before had not even been tried. The ledger cannot tell them from events behind a dead letter
/// that was given up untried; here nothing may be given up untried.
fn skipped(entries: &[Entry]) -> usize {
    let mut started: HashSet<(&str, &str, i64)> = HashSet::new();
    let mut skipped = 0;
    for entry in entries.iter().filter(|entry| entry.moment != Moment::Answer) {
        let lane = (entry.aggregate_type.as_str(), entry.aggregate_id.as_str());
        let first_attempt = started.insert((lane.0, lane.1, entry.sequence));
        if first_attempt && entry.sequence > 1 && !started.contains(&(lane.0, lane.1, entry.sequence - 1)) {
            skipped += 1;
        }
    }
    skipped
}
