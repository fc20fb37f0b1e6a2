//! Many destinations, one of which is dead and one answers after ten seconds: what the others lose by it.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::Outcome;
use crate::arguments::{Arguments, Fanout};
use crate::contender::fanout;
use crate::race::{LATENCY_MEDIAN, LATENCY_P99, RATE, Race};
use crate::receiver::Receiver;
use crate::stage::{Stage, block_on, connect};

const WELL: &str = "all are well";
const TROUBLED: &str = "one dead, one slow";

const DESTINATIONS: u32 = 50;

/// Destinations that are well in both runs, and counted.
const COUNTED: u32 = DESTINATIONS - 2;

/// Aggregates per destination.
const AGGREGATES: u32 = 20;

/// How long the slow one takes over each answer.
const SLOWNESS: Duration = Duration::from_secs(10);

/// Rounds of events (one per destination each) written per second while latency is measured.
const ROUNDS_PER_SECOND: u32 = 20;

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let per_destination = (arguments.events / DESTINATIONS).max(1);
    let title = format!(
        "a backlog of {per_destination} events for each of {DESTINATIONS} destinations; the {COUNTED} others"
    );
    let mut backlog = Race::new("isolation", title, WELL);
    let per_second = ROUNDS_PER_SECOND * DESTINATIONS;
    let title = format!("{per_second} events/s to {DESTINATIONS} destinations; the {COUNTED} others");
    let mut steady = Race::new("isolation, latency", title, WELL);
    let rounds = (arguments.seconds * 5.0 * f64::from(ROUNDS_PER_SECOND)).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds are few and positive"
    )]
    let rounds = rounds as u32;
    let field = Field { stage, well: Receiver::start(Duration::ZERO)?, slow: Receiver::start(SLOWNESS)? };
    for _ in 0..stage.rounds {
        for (name, troubled) in [(WELL, false), (TROUBLED, true)] {
            backlog.add(name, vec![(&RATE, field.drain(per_destination, troubled)?)]);
            let shared = field.keep_up(rounds, troubled)?;
            steady.add(name, vec![(&LATENCY_P99, shared.p99_ms), (&LATENCY_MEDIAN, shared.median_ms)]);
        }
    }
    Ok(vec![backlog, steady])
}

struct Field<'a> {
    stage: &'a Stage,
    well: Receiver,
    slow: Receiver,
}

impl Field<'_> {
    fn part(&self, database_url: String, per_destination: u32, troubled: bool) -> Fanout {
        Fanout {
            database_url,
            target: self.well.url(),
            destinations: DESTINATIONS,
            expect: u64::from(per_destination * COUNTED),
            // Port 9 (discard, RFC 863) is below those that anybody may listen on.
            dead: troubled.then(|| "http://127.0.0.1:9/".to_owned()),
            slow: troubled.then(|| self.slow.url()),
        }
    }

    /// Confirmations per second while a backlog is worked off.
    fn drain(&self, per_destination: u32, troubled: bool) -> Outcome<f64> {
        let database = self.stage.database();
        let url = database.url();
        block_on(async {
            let client = connect(&url).await?;
            client.batch_execute(&postbox_postgres::schema::migration_sql(None)).await?;
            for round in 0..per_destination {
                write_round(&client, round).await?;
            }
            Ok(())
        })?;
        self.stage.settle_down();
        Ok(fanout::deliver(&self.part(url, per_destination, troubled))?.rate)
    }

    /// What the relay makes of a steady stream of events.
    fn keep_up(&self, rounds: u32, troubled: bool) -> Outcome<fanout::Shared> {
        let database = self.stage.database();
        let url = database.url();
        block_on(async {
            connect(&url).await?.batch_execute(&postbox_postgres::schema::migration_sql(None)).await?;
            Ok(())
        })?;
        self.stage.settle_down();
        let part = self.part(url.clone(), rounds, troubled);
        std::thread::scope(|scope| {
            let relay = scope.spawn(move || fanout::deliver(&part));
            block_on(async {
                let client = connect(&url).await?;
                let began = Instant::now();
                for round in 0..rounds {
                    let due = began + Duration::from_secs(1) * round / ROUNDS_PER_SECOND;
                    tokio::time::sleep_until(due.into()).await;
                    write_round(&client, round).await?;
                }
                Ok(())
            })?;
            relay.join().map_err(|_| "the thread that waits for the relay panicked")?
        })
    }
}

/// Writes one event for every destination, in one transaction.
async fn write_round(client: &Client, round: u32) -> Outcome<()> {
    let types: Vec<String> = (0..DESTINATIONS).map(fanout::event_type).collect();
    let aggregate = i64::from(round % AGGREGATES);
    client.execute(include_str!("isolation.sql"), &[&types, &aggregate]).await?;
    Ok(())
}
