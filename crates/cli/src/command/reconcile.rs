//! `postbox reconcile`: what was sent against what was received.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use postbox_core::destination::Ordering;
use postbox_core::endpoint::Settings;
use postbox_core::operations::{Operations, Story};
use postbox_core::store::StoreErrorKind;
use serde::Serialize;
use uuid::Uuid;

use crate::batch::progress;
use crate::cli::Global;
use crate::command::story::tell;
use crate::config::{Config, Secrets};
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::horizon::ConsumerDatabase;
use crate::moment::parse_moment;
use crate::output::{say, say_json};
use crate::reconcile::{Comparison, Question, Receipts, compare};

/// Compare what the outbox has delivered with what a consumer has received.
///
/// Reports per destination what is missing, extra, duplicated or out of order, with the events' stories, and ends with
/// exit code 1 when anything is missing. Reads both sides in order, with less than 100 MiB of memory for any number of
/// events, and about 64 bytes for each of them in the temporary directory (TMPDIR).
#[derive(Debug, Args)]
pub(crate) struct Reconcile {
    /// Destinations [default: all that the configuration names].
    #[arg(long = "destination", value_name = "NAME")]
    destinations: Vec<String>,

    #[command(flatten)]
    inbox: ConsumerDatabase,

    /// Name of the consumer in the inbox [default: that of the destination].
    #[arg(long, value_name = "NAME", help_heading = "Consumer", conflicts_with = "ids")]
    consumer: Option<String>,

    /// Instead of an inbox, a list of the event ids that one consumer has received, one on each line in the order of
    /// acceptance; - reads it from standard input.
    #[arg(long, value_name = "FILE", help_heading = "Consumer", conflicts_with_all = ["inbox_url", "inbox_schema"])]
    ids: Option<PathBuf>,

    /// Only events written at or after: 2026-01-31T10:15:00Z, 2026-01-31, or how long ago: 2h, 7d.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    since: Option<Timestamp>,

    /// Only events written before. With a list, give the moment at which it was made.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<Timestamp>,

    /// Events that are named, with their stories, for each kind of finding.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=1000))]
    show: u16,

    /// Print JSON; docs/configuration.md names its fields.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    destinations: Vec<Comparison>,
    /// Of every event that is named above and still in the outbox.
    stories: Vec<Story>,
}

impl Reconcile {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let config = Config::load(global.config.as_deref(), Secrets::Trust)?;
        let names = self.names(&config)?;
        let outbox = Database::open(&Target::choose(global, &config)?)?;
        let elsewhere = self.inbox.open()?;
        let inbox = elsewhere.as_ref().unwrap_or(&outbox);
        let mut comparisons = Vec::new();
        for name in names {
            comparisons.push(self.compare(&config, &outbox, inbox, name).await?);
        }
        let missing: u64 = comparisons.iter().map(|comparison| comparison.missing.count).sum();
        self.report(comparisons, outbox.operations()).await?;
        match missing {
            0 => Ok(()),
            1 => Err(lost("1 event is missing")),
            count => Err(lost(&format!("{count} events are missing"))),
        }
    }

    /// The destinations to look at; with a list, exactly one.
    fn names<'a>(&'a self, config: &'a Config) -> Result<Vec<&'a str>, CommandError> {
        let configured = || config.destinations.iter().map(|found| found.name.value.as_str()).collect();
        let names: Vec<&str> = match self.destinations.as_slice() {
            [] => configured(),
            some => some.iter().map(String::as_str).collect(),
        };
        match names.len() {
            0 => {
                Err(CommandError::usage("no destination is named", "give --destination, or a configuration"))
            }
            1 => Ok(names),
            _ if self.ids.is_some() => Err(CommandError::usage(
                "a list of ids is that of one consumer",
                "say which with --destination",
            )),
            _ => Ok(names),
        }
    }

    async fn compare(
        &self,
        config: &Config,
        outbox: &Database,
        inbox: &Database,
        destination: &str,
    ) -> Result<Comparison, CommandError> {
        let consumer = self.consumer.as_deref().unwrap_or(destination);
        let bar = progress(outbox.outgoing().estimate_events().await?, destination);
        let retention = match self.ids {
            Some(_) => None,
            None => inbox.inbox().inbox_retention().await?,
        };
        let question = Question {
            outgoing: outbox.outgoing(),
            destination,
            ordered: is_ordered(config, outbox.operations(), destination).await?,
            since: self.since,
            until: self.until,
            inbox_retention: retention,
            named: self.show.into(),
        };
        let comparison = match &self.ids {
            None => compare(&question, Receipts::of_inbox(inbox.inbox(), consumer), consumer, &bar).await?,
            Some(path) if path.as_os_str() == "-" => {
                let list = Receipts::of_list(std::io::stdin().lock(), "standard input")?;
                compare(&question, list, "standard input", &bar).await?
            }
            Some(path) => {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| {
                    CommandError::usage(format!("{name} cannot be read: {error}"), "name a file with --ids")
                })?;
                compare(&question, Receipts::of_list(BufReader::new(file), &name)?, &name, &bar).await?
            }
        };
        bar.finish_and_clear();
        Ok(comparison)
    }

    async fn report(
        &self,
        destinations: Vec<Comparison>,
        operations: &dyn Operations,
    ) -> Result<(), CommandError> {
        if self.json {
            let mut stories = Vec::new();
            for event in named(&destinations) {
                stories.extend(operations.story(event, false).await?);
            }
            return say_json(&Report { destinations, stories });
        }
        for comparison in &destinations {
            say(format!("{}\n", comparison.table()))?;
            for (what, findings) in comparison.findings() {
                for event in &findings.events {
                    let story = operations.story(*event, false).await?;
                    let told =
                        story.map_or_else(|| format!("event       {event}\nnot in the outbox"), |s| tell(&s));
                    say(format!("{what}:\n{told}\n"))?;
                }
                let rest = findings.count - findings.events.len() as u64;
                if rest > 0 {
                    say(format!("{what}: {rest} more (--show names them)\n"))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a destination promises order, by the configuration or by the settings kept as data.
async fn is_ordered(
    config: &Config,
    operations: &dyn Operations,
    destination: &str,
) -> Result<bool, CommandError> {
    if let Some(configured) = config.destinations.iter().find(|found| found.name.value == destination) {
        return Ok(configured.ordering == Ordering::Lane);
    }
    let kept = match operations.find_endpoint(destination).await {
        // Whoever may only look may not look at settings; most destinations keep order.
        Err(error) if error.kind == StoreErrorKind::Denied => None,
        found => found?,
    };
    Ok(match kept.map(|record| Settings::read(record.settings.as_deref())) {
        Some(Settings::Usable(settings)) => settings.ordering == Ordering::Lane,
        _ => true,
    })
}

/// Every event that is named, once.
fn named(comparisons: &[Comparison]) -> Vec<Uuid> {
    let mut events: Vec<Uuid> = comparisons
        .iter()
        .flat_map(|comparison| comparison.findings().flat_map(|(_, found)| found.events.iter().copied()))
        .collect();
    events.sort_unstable();
    events.dedup();
    events
}

fn lost(message: &str) -> CommandError {
    CommandError::remains(
        message,
        "delivered by the outbox's record, but not received by the consumer: `postbox replay EVENT_ID` sends them again",
    )
}
