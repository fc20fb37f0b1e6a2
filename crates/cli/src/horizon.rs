//! Whether an inbox remembers an event for as long as its sender may send it again.

use std::time::Duration;

use clap::Args;
use postbox_core::endpoint::Settings;
use postbox_core::store::StoreErrorKind;
use serde::Serialize;

use crate::config::Config;
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::moment::show_age;

/// Where the consumer keeps its inbox.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Consumer")]
pub(crate) struct ConsumerDatabase {
    /// Database of the inbox [default: the outbox's own].
    #[arg(long, value_name = "URL", env = "POSTBOX_INBOX_URL", hide_env_values = true)]
    inbox_url: Option<String>,

    /// Schema of the inbox (PostgreSQL) [default: the connection's].
    #[arg(long, value_name = "NAME")]
    inbox_schema: Option<String>,
}

impl ConsumerDatabase {
    /// The consumer's database when it is another one.
    ///
    /// # Errors
    /// When its URL cannot be used.
    pub(crate) fn open(&self) -> Result<Option<Database>, CommandError> {
        match self.inbox_url.as_deref().filter(|url| !url.is_empty()) {
            Some(url) => Ok(Some(Database::open(&Target::parse(url, self.inbox_schema.as_deref())?)?)),
            None if self.inbox_schema.is_some() => Err(CommandError::usage(
                "--inbox-schema needs --inbox-url",
                "give the URL of the inbox's database as well, even if it is the outbox's",
            )),
            None => Ok(None),
        }
    }
}

/// How long each side can look back. `None` stands for ever.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Horizon {
    /// How long the inbox remembers an event, by its last pruning.
    kept_seconds: Option<u64>,
    /// How long an event may be replayed, by the outbox's last pruning.
    replay_seconds: Option<u64>,
    /// The longest retry schedule of all destinations.
    retry_seconds: u64,
    /// Whether an event can come again after the inbox has forgotten it.
    too_short: bool,
}

impl Horizon {
    /// # Errors
    /// When one of the databases cannot be asked.
    pub(crate) async fn find(
        config: &Config,
        outbox: &Database,
        consumer: &ConsumerDatabase,
    ) -> Result<Self, CommandError> {
        let elsewhere = consumer.open()?;
        let inbox = match elsewhere.as_ref().unwrap_or(outbox).inbox().inbox_retention().await {
            // Tables of an older version have no window to be too short; `status` goes on without them.
            Err(error) if error.kind == StoreErrorKind::SchemaMissing && elsewhere.is_none() => None,
            other => other?,
        };
        let Some(inbox) = inbox else {
            return Ok(Self::of(None, None, longest_retries(config, outbox).await?));
        };
        let replay = outbox.outgoing().outbox_retention().await?.map(|outbox| outbox.keep);
        Ok(Self::of(Some(inbox.keep), replay, longest_retries(config, outbox).await?))
    }

    fn of(kept: Option<Duration>, replay: Option<Duration>, retry: Duration) -> Self {
        let too_short = kept.is_some_and(|kept| replay.is_none_or(|replay| kept < replay + retry));
        Self {
            kept_seconds: kept.map(|kept| kept.as_secs()),
            replay_seconds: replay.map(|replay| replay.as_secs()),
            retry_seconds: retry.as_secs(),
            too_short,
        }
    }

    /// What to tell an operator; nothing when all is well.
    pub(crate) fn warning(&self) -> Option<String> {
        let kept = show_seconds(self.kept_seconds.filter(|_| self.too_short)?);
        let retries = show_seconds(self.retry_seconds);
        Some(match self.replay_seconds {
            Some(replay) => format!(
                "The inbox forgets an event after {kept}, but it can come again for {} (replays) and {retries} (retries): \
                 use a longer `postbox inbox prune --older-than`.",
                show_seconds(replay)
            ),
            None => format!(
                "The inbox forgets an event after {kept}, but the outbox is never pruned, so any event can be replayed: \
                 run `postbox prune`."
            ),
        })
    }
}

/// Of the destinations in the configuration and those kept as data.
async fn longest_retries(config: &Config, outbox: &Database) -> Result<Duration, CommandError> {
    let configured = config.destinations.iter().map(|found| found.retry.longest_span(found.timeout.value));
    let kept = match outbox.operations().list_endpoints().await {
        // Whoever may only look may not look at settings.
        Err(error) if error.kind == StoreErrorKind::Denied => Vec::new(),
        found => found?,
    };
    let kept = kept.iter().filter_map(|record| match Settings::read(record.settings.as_deref()) {
        Settings::Usable(settings) => Some(settings.retry.longest_span(settings.timeout)),
        _ => None,
    });
    Ok(configured.chain(kept).max().unwrap_or_default())
}

fn show_seconds(seconds: u64) -> String {
    show_age(Duration::from_secs(seconds).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_window_warns_when_replays_and_retries_together_exceed_it() {
        let hours = DAY / 4;
        for (kept, replay, too_short) in [
            (None, None, false),
            (None, Some(90 * DAY), false),
            (Some(91 * DAY), Some(90 * DAY), false),
            (Some(90 * DAY), Some(90 * DAY), true),
            (Some(900 * DAY), None, true),
        ] {
            let horizon = Horizon::of(kept, replay, hours);
            assert_eq!(horizon.warning().is_some(), too_short, "{horizon:?}");
        }
    }

    #[test]
    fn the_warning_says_by_how_much_and_what_to_do() {
        let horizon = Horizon::of(Some(30 * DAY), Some(90 * DAY), DAY / 3);
        assert_eq!(
            horizon.warning().as_deref(),
            Some(
                "The inbox forgets an event after 30 d, but it can come again for 90 d (replays) and 8 h (retries): \
                 use a longer `postbox inbox prune --older-than`."
            )
        );
    }
}
