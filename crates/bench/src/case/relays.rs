//! One backlog for several relays: sharing the work must not cost more than it brings.

use std::time::Duration;

use super::backlog::Backlog;
use super::open_transaction::OpenTransaction;
use super::patience::wait_until;
use crate::Outcome;
use crate::arguments::Arguments;
use crate::contender::{Drained, StandingRelay};
use crate::producing::Layout;
use crate::race::{Race, SHARE, Sample};
use crate::receiver::Receiver;
use crate::stage::{Stage, block_on, connect};

/// The opponent first.
const RELAYS: [(&str, u32); 3] = [("1 relay", 1), ("2 relays", 2), ("4 relays", 4)];

/// Attempts in flight at once from one relay.
const CONCURRENCY: u32 = 64;

/// Enough for a few seconds at the expected rate.
const EVENTS_PER_DRAIN_EVENT: u32 = 5;

/// Short, so that relays share the shards soon; long beside a busy machine's hiccups.
const LEASE: Duration = Duration::from_secs(6);

const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let events = arguments.events * EVENTS_PER_DRAIN_EVENT;
    let title = format!(
        "{events} events of {} aggregates, committed at once, over HTTP; {CONCURRENCY} attempts in flight from each relay",
        arguments.aggregates
    );
    let mut race = Race::new("relays", title, RELAYS[0].0);
    let receiver = Receiver::start(Duration::ZERO)?;
    for _ in 0..stage.rounds {
        for (name, relays) in RELAYS {
            race.add(name, share(stage, &receiver, events, arguments.aggregates, relays)?);
        }
    }
    Ok(vec![race])
}

/// The relays share the shards first; then the backlog appears, by one commit.
fn share(stage: &Stage, receiver: &Receiver, events: u32, aggregates: u32, relays: u32) -> Outcome<Sample> {
    let backlog = Backlog::new(stage, receiver)?;
    let (url, target) = (backlog.url(), receiver.url());
    let writing = OpenTransaction::begin(&url, "BEGIN")?;
    writing.run(async |client| Layout::Postbox.load(client, events, aggregates).await)?;
    let fleet = (0..relays)
        .map(|_| StandingRelay::start(&url, &target, CONCURRENCY, LEASE))
        .collect::<Outcome<Vec<_>>>()?;
    wait_until("every relay had its share", PATIENCE, || block_on(is_balanced(&url, relays)))?;
    stage.settle_down();
    let wanted = receiver.count()? + u64::from(events);
    let mut least = 0.0;
    let mut sample = backlog.measure(events, || {
        writing.commit()?;
        wait_until("everything was received", PATIENCE, || Ok(receiver.count()? >= wanted))?;
        let parts = fleet.into_iter().map(StandingRelay::stop).collect::<Outcome<Vec<_>>>()?;
        let fewest = parts.iter().map(|part| part.events).min().unwrap_or_default();
        least = 100.0 * fewest as f64 / f64::from(events);
        Ok(Drained::together(&parts))
    })?;
    sample.push((&SHARE, least));
    Ok(sample)
}

async fn is_balanced(url: &str, relays: u32) -> Outcome<bool> {
    let row =
        connect(url).await?.query_one(include_str!("relays_balanced.sql"), &[&i64::from(relays)]).await?;
    Ok(row.try_get(0)?)
}
