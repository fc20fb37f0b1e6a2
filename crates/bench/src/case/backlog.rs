//! A backlog in a database of its own, and one relay that drains it over HTTP.

use postbox_testkit::postgres::Database;

use crate::Outcome;
use crate::contender::{Drained, relay};
use crate::producing::Layout;
use crate::race::{CPU_PER_EVENT, DATABASE_CPU, EVENTS_PER_SETTLE, RATE, RELAY_CPU, SETTLE_WAL, Sample};
use crate::receiver::Receiver;
use crate::stage::{DatabaseCost, Stage, block_on, connect};

/// See the module's documentation.
pub(crate) struct Backlog<'a> {
    stage: &'a Stage,
    receiver: &'a Receiver,
    database: Database<'a>,
}

impl<'a> Backlog<'a> {
    /// An empty outbox in a fresh database.
    pub(crate) fn new(stage: &'a Stage, receiver: &'a Receiver) -> Outcome<Self> {
        let database = stage.database();
        block_on(async { Layout::Postbox.migrate(&connect(&database.url()).await?).await })?;
        Ok(Self { stage, receiver, database })
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    /// Runs statements in the backlog's database.
    pub(crate) fn execute(&self, statements: &str) -> Outcome<()> {
        block_on(async { Ok(connect(&self.url()).await?.batch_execute(statements).await?) })
    }

    /// Writes `events` events of `aggregates` aggregates.
    pub(crate) fn load(&self, events: u32, aggregates: u32) -> Outcome<()> {
        block_on(async { Layout::Postbox.load(&connect(&self.url()).await?, events, aggregates).await })
    }

    /// Has a relay drain what must be `events` events.
    pub(crate) fn drain(&self, events: u32, concurrency: u32) -> Outcome<Sample> {
        self.stage.settle_down();
        let target = self.receiver.url();
        self.measure(events, || relay::drain(&self.url(), Some(&target), concurrency))
    }

    /// Watches `work` deliver `events` events to the receiver, no more and no fewer.
    pub(crate) fn measure(&self, events: u32, work: impl FnOnce() -> Outcome<Drained>) -> Outcome<Sample> {
        let before = self.receiver.count()?;
        let (drained, cost) = self.stage.watch(work)?;
        let received = self.receiver.count()? - before;
        if received != u64::from(events) || drained.events != received {
            let settled = drained.events;
            return Err(format!(
                "{events} events, {received} received, {settled} settled: nothing to measure"
            )
            .into());
        }
        Ok(sample(&drained, cost))
    }
}

fn sample(drained: &Drained, cost: DatabaseCost) -> Sample {
    vec![
        (&RATE, drained.rate()),
        // Neighbours on the machine slow everything down and leave this much the same.
        (&CPU_PER_EVENT, 1e6 * (drained.cpu_seconds + cost.cpu_seconds) / drained.events as f64),
        (&RELAY_CPU, drained.cpu_seconds),
        (&DATABASE_CPU, cost.cpu_seconds),
        (&SETTLE_WAL, cost.wal_bytes / drained.events as f64),
        (&EVENTS_PER_SETTLE, drained.events as f64 / drained.settles as f64),
    ]
}
