//! A database, a receiver and places for relays.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use postbox_chaos::{Audience, Fleet, Mood, Stage, Timing};
use postbox_testkit::ledger::Ledger;
use postbox_testkit::process::eventually;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) struct Scene {
    pub(crate) stage: Stage,
    pub(crate) audience: Audience,
    pub(crate) fleet: Fleet,
    _folder: TempDir,
}

impl Scene {
    /// So many places; no relay runs yet. The receiver works a moment on each request and answers 200.
    pub(crate) async fn set(relays: usize, timing: Timing) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage::build();
        let audience = Audience::gather(folder.path(), Mood::Perfect, 1, timing.attempt).await;
        let fleet = Fleet::build(relays, folder.path(), &stage, audience.address(), timing).await;
        Self { stage, audience, fleet, _folder: folder }
    }

    /// Commits one event for each of `lanes` aggregates, `rounds` times.
    pub(crate) fn produce(&self, lanes: usize, rounds: usize) {
        self.stage.sql(&format!(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             SELECT 'account', lane, 'account.changed', '{{}}'
             FROM generate_series(1, {rounds}) AS round, generate_series(1, {lanes}) AS lane
             ORDER BY round, lane"
        ));
    }

    pub(crate) fn drained(&self) {
        eventually("everything is delivered", || self.stage.unfinished() == 0);
    }

    /// Shards by the label of their owner's process, as the database shows them.
    pub(crate) fn shares(&self) -> BTreeMap<u32, usize> {
        let rows = self.stage.query(
            "SELECT substring(label FROM '[0-9]+$'), (SELECT count(*) FROM outbox_shard WHERE owner = relay)
             FROM outbox_relay",
        );
        let share = |row: &str| {
            let (pid, shards) = row.split_once('|').unwrap();
            (pid.parse().unwrap(), shards.parse().unwrap())
        };
        rows.lines().map(share).collect()
    }

    /// Waits until so many relays own all shards, none of them more than its fair share.
    pub(crate) fn balanced(&self, relays: usize) {
        eventually("the relays have their fair shares", || {
            let shares = self.shares();
            let most = 64_usize.div_ceil(relays);
            shares.len() == relays
                && shares.values().sum::<usize>() == 64
                && shares.values().all(|&share| share <= most)
        });
    }

    /// What the receiver got, against everything that is in the outbox.
    pub(crate) fn ledger(&self) -> Ledger {
        let committed: HashSet<Uuid> =
            self.stage.query("SELECT event_id FROM outbox").lines().map(|id| id.parse().unwrap()).collect();
        let ledger = Ledger::of(&self.audience.entries(), &committed, &HashSet::new());
        assert!(ledger.adds_up(), "{ledger:?}");
        assert_eq!(ledger.delivered, committed.len());
        ledger
    }
}

/// A lease that is lost soon, and attempts that fit into it.
pub(crate) const SHORT: Timing = Timing {
    lease: Duration::from_millis(1_500),
    attempt: Duration::from_millis(800),
    drain: Duration::from_secs(10),
};
