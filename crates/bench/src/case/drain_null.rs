//! A backlog to a destination that confirms at once: what the relay and the database do on their own.

use crate::Outcome;
use crate::arguments::Arguments;
use crate::contender::relay;
use crate::producing::Layout;
use crate::race::{DATABASE_CPU, EVENTS_PER_SETTLE, PEAK_MEMORY, RATE, RELAY_CPU, Race, SETTLE_WAL};
use crate::stage::{Stage, block_on, connect};

const POSTBOX: &str = "postbox, no destination";

/// Enough for a few seconds at the expected rate.
const EVENTS_PER_DRAIN_EVENT: u32 = 5;

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let events = arguments.events * EVENTS_PER_DRAIN_EVENT;
    let aggregates = arguments.aggregates;
    let title =
        format!("{events} events of {aggregates} aggregates, 250 bytes each, to a sink that does nothing");
    let mut race = Race::new("drain-null", title, POSTBOX);
    for _ in 0..stage.rounds {
        let database = stage.database();
        let url = database.url();
        block_on(async {
            let client = connect(&url).await?;
            Layout::Postbox.migrate(&client).await?;
            Layout::Postbox.load(&client, events, aggregates).await
        })?;
        stage.settle_down();
        let (drained, cost) = stage.watch(|| relay::drain(&url, None, 64))?;
        if drained.events != u64::from(events) {
            return Err(format!("{} of {events} events settled: nothing to measure", drained.events).into());
        }
        race.add(
            POSTBOX,
            vec![
                (&RATE, drained.rate()),
                (&SETTLE_WAL, cost.wal_bytes / f64::from(events)),
                (&RELAY_CPU, drained.cpu_seconds),
                (&DATABASE_CPU, cost.cpu_seconds),
                (&PEAK_MEMORY, drained.peak_megabytes),
                (&EVENTS_PER_SETTLE, drained.events as f64 / drained.settles as f64),
            ],
        );
    }
    Ok(vec![race])
}
