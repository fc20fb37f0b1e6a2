//! `postbox inbox`: the consumer's half, on the consumer's database.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::batch::{progress, run_batches};
use crate::cli::Global;
use crate::config::parse_duration;
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::output::say;

/// Events forgotten per transaction.
const BATCH: u32 = 5_000;

/// Look after an inbox; --database-url names the consumer's database.
#[derive(Debug, Subcommand)]
pub(crate) enum Inbox {
    Prune(Prune),
}

/// Forget events that were received long ago.
///
/// 5,000 per transaction. An event that is sent again after that is taken for new, so keep it longer than the sender
/// retries and replays: `postbox status` warns when the window is too short.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Forget events received longer ago than this. The default exceeds the 90 days that `postbox prune` keeps dead
    /// letters.
    #[arg(long, value_name = "DURATION", default_value = "120d", value_parser = parse_duration)]
    older_than: Duration,

    /// Stop after this many batches, with exit code 1 when something was left.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    max_batches: u64,
}

impl Inbox {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        match self {
            Self::Prune(prune) => prune.run(global).await,
        }
    }
}

impl Prune {
    async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let database = Database::open(&Target::find(global)?)?;
        let inbox = database.inbox();
        let older_than = self.older_than;
        let run =
            run_batches(Some(self.max_batches), None, progress(0, "Forgetting events"), |after| async move {
                inbox.prune_inbox(older_than, after, BATCH).await
            })
            .await?;
        say(match run.changed {
            1 => "1 event forgotten".to_owned(),
            count => format!("{count} events forgotten"),
        })?;
        if run.done {
            return Ok(());
        }
        Err(CommandError::remains(
            format!("pruning did not keep up: {} batches of {BATCH} were not enough", self.max_batches),
            "run it more often or with a higher --max-batches; what was forgotten stays forgotten",
        ))
    }
}
