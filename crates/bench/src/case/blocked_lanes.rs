//! A backlog of lanes that are free, in a database in which many are not.

use std::time::Duration;

use super::backlog::Backlog;
use crate::Outcome;
use crate::arguments::Arguments;
use crate::contender::relay::DESTINATION;
use crate::race::Race;
use crate::receiver::Receiver;
use crate::stage::{Stage, block_on, connect};

/// Enough for a few seconds at the expected rate.
const EVENTS_PER_DRAIN_EVENT: u32 = 5;

/// Attempts in flight at once.
const CONCURRENCY: u32 = 64;

const NONE: &str = "none blocked";

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let Arguments { aggregates, blocked_lanes, .. } = *arguments;
    let events = arguments.events * EVENTS_PER_DRAIN_EVENT;
    let title = format!(
        "{events} events of {aggregates} free aggregates over HTTP, beside aggregates that are blocked"
    );
    let mut race = Race::new("blocked-lanes", title, NONE);
    let receiver = Receiver::start(Duration::ZERO)?;
    let many = format!("{blocked_lanes} blocked");
    for _ in 0..stage.rounds {
        for (name, blocked) in [(NONE, 0), (many.as_str(), blocked_lanes)] {
            let backlog = Backlog::new(stage, &receiver)?;
            block(&backlog, blocked)?;
            backlog.load(events, aggregates)?;
            race.add(name, backlog.drain(events, CONCURRENCY)?);
        }
    }
    Ok(vec![race])
}

/// Leaves `lanes` blocked lanes behind, and the tables as autovacuum would.
fn block(backlog: &Backlog<'_>, lanes: u32) -> Outcome<()> {
    block_on(async {
        let client = connect(&backlog.url()).await?;
        client.execute(include_str!("blocked_events.sql"), &[&i64::from(lanes)]).await?;
        client.execute(include_str!("blocked_lanes.sql"), &[&DESTINATION]).await?;
        client.batch_execute("VACUUM ANALYZE").await?;
        Ok(())
    })
}
