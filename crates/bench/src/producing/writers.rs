//! Several connections that write one event after the other, each in a transaction of its own.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::layout::{Layout, Writer};
use crate::Outcome;
use crate::stage::connect;

/// When writers stop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    /// After so many events in all, shared evenly.
    Events(u32),
    /// When this time is over.
    After(Duration),
}

/// Which aggregates are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aggregates {
    /// Every event belongs to an aggregate of its own.
    New,
    /// So many, in turn. When there are at least as many as connections, and a multiple of them, no two connections
    /// write to the same one.
    Of(u32),
}

/// What was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) events: u64,
    pub(crate) failed_tries: u64,
    pub(crate) seconds: f64,
}

/// Writes over `connections` connections until `stop`.
pub(crate) async fn write(
    layout: Layout,
    url: &str,
    connections: u32,
    aggregates: Aggregates,
    stop: Stop,
) -> Outcome<Written> {
    let mut writers = Vec::new();
    for _ in 0..connections {
        writers.push(Writer::prepare(layout, connect(url).await?).await?);
    }
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for (nth, writer) in (0..connections).zip(writers) {
        tasks.spawn(one_by_one(writer, nth, connections, aggregates, stop, began));
    }
    let mut sum = Written { events: 0, failed_tries: 0, seconds: 0.0 };
    while let Some(done) = tasks.join_next().await {
        let (events, failed_tries) = done??;
        sum.events += events;
        sum.failed_tries += failed_tries;
    }
    sum.seconds = began.elapsed().as_secs_f64();
    Ok(sum)
}

async fn one_by_one(
    writer: Writer,
    nth: u32,
    connections: u32,
    aggregates: Aggregates,
    stop: Stop,
    began: Instant,
) -> Outcome<(u64, u64)> {
    let (mut events, mut failed_tries) = (0, 0);
    for place in (u64::from(nth)..).step_by(connections as usize) {
        let over = match stop {
            Stop::Events(all) => place >= u64::from(all),
            Stop::After(time) => began.elapsed() >= time,
        };
        if over {
            break;
        }
        let aggregate_id = match aggregates {
            Aggregates::New => format!("n-{place}"),
            Aggregates::Of(count) => format!("a-{}", place % u64::from(count)),
        };
        failed_tries += writer.write(&aggregate_id).await?;
        events += 1;
    }
    Ok((events, failed_tries))
}
