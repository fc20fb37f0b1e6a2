//! A backlog over HTTP, against the naive design and against the receiver's own ceiling.

use std::time::Duration;

use crate::Outcome;
use crate::arguments::Arguments;
use crate::contender::{Drained, naive, relay};
use crate::load;
use crate::process;
use crate::producing::{Aggregates, Layout, Stop, write};
use crate::race::{
    DATABASE_CPU, EVENTS_PER_SETTLE, PEAK_MEMORY, PRODUCE_WAL, RATE, RECEIVER_CPU, RELAY_CPU, Race,
    SETTLE_WAL, Sample, WAL,
};
use crate::receiver::Receiver;
use crate::stage::{Stage, block_on, connect};

const NAIVE: &str = "naive, 1 worker";
const NAIVE_MANY: &str = "naive, 8 workers (reorders)";
const POSTBOX: &str = "postbox";
const CEILING: &str = "receiver's ceiling";

/// Connections that write the backlog.
const PRODUCERS: u32 = 8;

/// Attempts in flight at once, and connections of the load generator.
const CONCURRENCY: u32 = 64;

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let Arguments { events, aggregates, .. } = *arguments;
    let title = format!("{events} events of {aggregates} aggregates, 250 bytes each, to one receiver");
    let mut race = Race::new("drain", title, NAIVE);
    let receiver = Receiver::start(Duration::ZERO)?;
    let target = receiver.url();
    let length = Duration::try_from_secs_f64(arguments.seconds)?;
    let backlog = Backlog { stage, receiver: &receiver, events, aggregates };
    for _ in 0..stage.rounds {
        race.add(NAIVE, backlog.drain(Layout::Naive, |url| naive::drain(url, &target, 1))?);
        race.add(
            POSTBOX,
            backlog.drain(Layout::Postbox, |url| relay::drain(url, Some(&target), CONCURRENCY))?,
        );
        race.add(NAIVE_MANY, backlog.drain(Layout::Naive, |url| naive::drain(url, &target, 8))?);
        let ceiling = load::requests_per_second(receiver.address(), CONCURRENCY, length)?;
        race.add(CEILING, vec![(&RATE, ceiling)]);
    }
    if let (Some(own), Some(ceiling)) = (race.summary(POSTBOX, &RATE), race.summary(CEILING, &RATE)) {
        race.notes.push(format!(
            "postbox reaches {:.0} % of what the receiver takes from a load generator on as many connections",
            100.0 * own.median / ceiling.median
        ));
    }
    Ok(vec![race])
}

struct Backlog<'a> {
    stage: &'a Stage,
    receiver: &'a Receiver,
    events: u32,
    aggregates: u32,
}

impl Backlog<'_> {
    /// Writes a backlog into a fresh database and has it drained.
    fn drain(&self, layout: Layout, drain: impl FnOnce(&str) -> Outcome<Drained>) -> Outcome<Sample> {
        let database = self.stage.database();
        let url = database.url();
        block_on(async { layout.migrate(&connect(&url).await?).await })?;
        self.stage.settle_down();
        let ((), produced) = self.stage.watch(|| {
            block_on(async {
                write(layout, &url, PRODUCERS, Aggregates::Of(self.aggregates), Stop::Events(self.events))
                    .await?;
                Ok(())
            })
        })?;
        // Whoever is claimed from by the planner's leave gets statistics to plan with.
        database.sql("ANALYZE");

        let count_before = self.receiver.count()?;
        let receiver_cpu_before = process::tree_cpu_seconds(self.receiver.pid())?;
        let (drained, settled) = self.stage.watch(|| drain(&url))?;
        let receiver_cpu = process::tree_cpu_seconds(self.receiver.pid())? - receiver_cpu_before;
        let received = self.receiver.count()? - count_before;
        if received != u64::from(self.events) || drained.events != received {
            let Drained { events, .. } = drained;
            let wanted = self.events;
            return Err(format!(
                "{wanted} events, {received} received, {events} settled: nothing to measure"
            )
            .into());
        }
        let per_event = |bytes: f64| bytes / f64::from(self.events);
        Ok(vec![
            (&RATE, drained.rate()),
            (&WAL, per_event(produced.wal_bytes + settled.wal_bytes)),
            (&PRODUCE_WAL, per_event(produced.wal_bytes)),
            (&SETTLE_WAL, per_event(settled.wal_bytes)),
            (&RELAY_CPU, drained.cpu_seconds),
            (&DATABASE_CPU, settled.cpu_seconds),
            (&RECEIVER_CPU, receiver_cpu),
            (&PEAK_MEMORY, drained.peak_megabytes),
            (&EVENTS_PER_SETTLE, drained.events as f64 / drained.settles as f64),
        ])
    }
}
