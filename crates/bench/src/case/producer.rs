//! What writing an event costs the business transaction.

use std::time::Duration;

use postbox_testkit::postgres::Database;
use tokio_postgres::Client;

use crate::Outcome;
use crate::arguments::Arguments;
use crate::producing::{Aggregates, Layout, Stop, Written, write};
use crate::race::{DATABASE_CPU, RATE, RETRIES, Race, Sample, WAL};
use crate::stage::{DatabaseCost, Stage, block_on, connect};

/// Connections that write at the same time.
const PRODUCERS: u32 = 8;

/// Events of the hot aggregate that a snapshot pins.
const PINNED_EVENTS: u32 = 100_000;

const CONTENDERS: [(&str, Layout); 3] = [
    ("plain table, same indexes", Layout::Plain),
    ("naive, MAX(seq) + 1", Layout::Naive),
    ("postbox", Layout::Postbox),
];

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let length = Duration::try_from_secs_f64(arguments.seconds)?;
    let case = Case { stage, length };
    let mut races = Vec::new();
    for (name, title, aggregates) in [
        ("producer, new aggregates", "every event begins an aggregate", Aggregates::New),
        ("producer, known aggregates", "2,000 aggregates, no two connections on one", Aggregates::Of(2_000)),
        ("producer, hot aggregate", "all connections write to one aggregate", Aggregates::Of(1)),
    ] {
        let title = format!("one event per transaction on {PRODUCERS} connections; {title}");
        let mut race = Race::new(name, title, CONTENDERS[0].0);
        for _ in 0..stage.rounds {
            for (contender, layout) in CONTENDERS {
                race.add(contender, case.unpinned(layout, aggregates)?);
            }
        }
        compare_with_naive(&mut race);
        races.push(race);
    }
    races.extend(case.pinned()?);
    Ok(races)
}

fn compare_with_naive(race: &mut Race) {
    let [_, (naive, _), (own, _)] = CONTENDERS;
    if let (Some(naive), Some(own)) = (race.summary(naive, &RATE), race.summary(own, &RATE)) {
        race.notes.push(format!("postbox writes {:.2} × as fast as MAX(seq) + 1", own.median / naive.median));
    }
}

struct Case<'a> {
    stage: &'a Stage,
    length: Duration,
}

impl<'a> Case<'a> {
    fn prepare(&self, layout: Layout) -> Outcome<Database<'a>> {
        let database = self.stage.database();
        let url = database.url();
        block_on(async { layout.migrate(&connect(&url).await?).await })?;
        Ok(database)
    }

    fn unpinned(&self, layout: Layout, aggregates: Aggregates) -> Outcome<Sample> {
        let database = self.prepare(layout)?;
        let url = database.url();
        if aggregates == Aggregates::Of(2_000) {
            // Each aggregate is known when the clock starts.
            block_on(async { layout.load(&connect(&url).await?, 2_000, 2_000).await })?;
        }
        self.stage.settle_down();
        self.stage.watch(|| block_on(self.write(layout, &url, aggregates))).map(sample)
    }

    async fn write(&self, layout: Layout, url: &str, aggregates: Aggregates) -> Outcome<Written> {
        write(layout, url, PRODUCERS, aggregates, Stop::After(self.length)).await
    }

    /// One hot aggregate, before and after 100,000 of its events were written under the eyes of an old snapshot.
    fn pinned(&self) -> Outcome<Vec<Race>> {
        const BEFORE: &str = "before";
        const AFTER: &str = "after 100,000 events";
        let mut races = Vec::new();
        for (contender, layout) in CONTENDERS {
            let mut race = Race::new(
                format!("producer, hot aggregate under an old snapshot: {contender}"),
                "all connections write to one aggregate while another session holds a snapshot from before",
                BEFORE,
            );
            for _ in 0..self.stage.rounds {
                let database = self.prepare(layout)?;
                let url = database.url();
                // The client's connection is driven by the runtime of its own block_on, so all of it is one future.
                let pinning = async {
                    let other = connect(&url).await?;
                    hold_snapshot(&other).await?;
                    let before = self.write(layout, &url, Aggregates::Of(1)).await?;
                    layout.load(&connect(&url).await?, PINNED_EVENTS, 1).await?;
                    let after = self.write(layout, &url, Aggregates::Of(1)).await?;
                    other.batch_execute("COMMIT").await?;
                    Ok((before, after))
                };
                self.stage.settle_down();
                let (before, after) = block_on(pinning)?;
                race.add(BEFORE, rate(before));
                race.add(AFTER, rate(after));
            }
            races.push(race);
        }
        Ok(races)
    }
}

async fn hold_snapshot(client: &Client) -> Outcome<()> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").await?;
    Ok(())
}

fn rate(written: Written) -> Sample {
    vec![
        (&RATE, written.events as f64 / written.seconds),
        (&RETRIES, written.failed_tries as f64 / written.events as f64),
    ]
}

fn sample((written, cost): (Written, DatabaseCost)) -> Sample {
    let mut sample = rate(written);
    sample.insert(1, (&WAL, cost.wal_bytes / written.events as f64));
    sample.push((&DATABASE_CPU, cost.cpu_seconds));
    sample
}
