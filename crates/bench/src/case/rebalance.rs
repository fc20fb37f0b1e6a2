//! How long a relay that joins others waits for its fair share of the shards.

use std::time::Duration;

use super::backlog::Backlog;
use super::patience::wait_until;
use crate::Outcome;
use crate::arguments::Arguments;
use crate::contender::StandingRelay;
use crate::race::{HEARTBEATS, Race, SECONDS, Sample};
use crate::receiver::Receiver;
use crate::stage::{Stage, block_on, connect};

/// What the others must finish before they can hand a shard over.
const LATENCY: Duration = Duration::from_millis(20);

const CONCURRENCY: u32 = 64;

const LEASE: Duration = Duration::from_secs(6);

/// Enough for attempts to be in flight in every shard while relays join.
const EVENTS_PER_DRAIN_EVENT: u32 = 5;

const PATIENCE: Duration = Duration::from_secs(120);

const JOINING: [&str; 3] = ["the second joins", "the third joins", "the fourth joins"];

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let title = format!(
        "relays with a lease of {LEASE:?} join one after the other while a backlog is sent to a receiver that answers \
         after {LATENCY:?}"
    );
    let mut race = Race::new("rebalance", title, JOINING[0]);
    let receiver = Receiver::start(LATENCY)?;
    for _ in 0..stage.rounds {
        let backlog = Backlog::new(stage, &receiver)?;
        backlog.load(arguments.events * EVENTS_PER_DRAIN_EVENT, arguments.aggregates)?;
        let mut fleet = Vec::new();
        join(&backlog, &receiver, &mut fleet)?;
        for name in JOINING {
            let sample = join(&backlog, &receiver, &mut fleet)?;
            race.add(name, sample);
        }
    }
    Ok(vec![race])
}

/// Starts one more relay and waits until it owns what the others have too much of.
fn join(backlog: &Backlog<'_>, receiver: &Receiver, fleet: &mut Vec<StandingRelay>) -> Outcome<Sample> {
    let url = backlog.url();
    let relay = StandingRelay::start(&url, &receiver.url(), CONCURRENCY, LEASE)?;
    let label = relay.label();
    fleet.push(relay);
    let live = u32::try_from(fleet.len())?;
    let mut seconds = None;
    wait_until("the newcomer had its share", PATIENCE, || {
        seconds = block_on(waited(&url, &label, live))?;
        Ok(seconds.is_some())
    })?;
    let seconds = seconds.unwrap_or_default();
    // A lease is renewed three times as often as it would run out.
    let heartbeat = LEASE.as_secs_f64() / 3.0;
    Ok(vec![(&HEARTBEATS, seconds / heartbeat), (&SECONDS, seconds)])
}

/// Seconds by the database's clock from the newcomer's first heartbeat to the one that completed its share; `None`
/// while it is not complete.
async fn waited(url: &str, label: &str, live: u32) -> Outcome<Option<f64>> {
    let client = connect(url).await?;
    let row = client.query_opt(include_str!("rebalance.sql"), &[&label, &i64::from(live)]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}
