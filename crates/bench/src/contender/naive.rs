//! The naive workers.

use std::time::SystemTime;

use postbox_bench::naive::{Post, Settings, Worker};
use tokio::task::JoinSet;

use super::drained::{Busy, Drained, play_apart};
use crate::Outcome;
use crate::arguments::NaiveWorkers;
use crate::process;
use crate::stage::{block_on, connect};

/// Drains in another process.
pub(crate) fn drain(database_url: &str, target: &str, workers: u32) -> Outcome<Drained> {
    let workers = workers.to_string();
    play_apart(&[
        "naive-workers",
        "--database-url",
        database_url,
        "--target",
        target,
        "--workers",
        workers.as_str(),
    ])
}

/// Drains in this process and says what came of it.
pub(crate) fn play(part: &NaiveWorkers) -> Outcome<()> {
    let (events, busy) = block_on(work(part))?;
    Drained {
        events,
        busy: Some(busy),
        settles: events,
        cpu_seconds: process::own_cpu_seconds(),
        peak_megabytes: process::own_peak_megabytes(),
    }
    .say()
}

async fn work(part: &NaiveWorkers) -> Outcome<(u64, Busy)> {
    let mut workers = Vec::new();
    for _ in 0..part.workers {
        let client = connect(&part.database_url).await?;
        workers.push(Worker::prepare(client, Post::new(&part.target)?, Settings::default()).await?);
    }
    let began = SystemTime::now();
    let mut tasks = JoinSet::new();
    for mut worker in workers {
        tasks.spawn(async move { worker.work_until_empty().await });
    }
    let mut events = 0;
    while let Some(done) = tasks.join_next().await {
        events += done??.sent;
    }
    Ok((events, Busy::between(began, SystemTime::now())))
}
