//! `postbox prune`: keeps the history as long as it is wanted, and not longer.

use std::time::Duration;

use clap::Args;
use postbox_core::operations::PrunePolicy;

use crate::batch::{is_watched, progress, run_batches};
use crate::cli::Global;
use crate::config::{parse_duration, show_duration};
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::output::say;

/// Events removed per transaction.
const BATCH: u32 = 5_000;

/// Remove finished events that are old enough.
///
/// 5,000 per transaction. An event that is not finished is never removed, and an aggregate's sequence goes on where it
/// was.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Remove events older than this whose deliveries are all delivered, discarded or expired.
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = parse_duration)]
    older_than: Duration,

    /// Remove events older than this that have a dead or unrouted delivery.
    #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = parse_duration)]
    dead_older_than: Duration,

    /// Stop after this many batches, with exit code 1 when something was left.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    max_batches: u64,

    /// Only say how many events would be removed.
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        if self.dead_older_than < self.older_than {
            return Err(CommandError::usage(
                format!(
                    "--dead-older-than {} is shorter than --older-than {}",
                    show_duration(self.dead_older_than),
                    show_duration(self.older_than)
                ),
                "dead letters are kept at least as long as delivered events",
            ));
        }
        let policy = PrunePolicy { older_than: self.older_than, dead_older_than: self.dead_older_than };
        let database = Database::open(&Target::find(global)?)?;
        let operations = database.operations();
        if self.dry_run {
            return say(format!("{} would be removed", events(operations.count_prunable(&policy).await?)));
        }
        // Counting costs as much as a good part of the work, so only for somebody who watches.
        let total = if is_watched() { operations.count_prunable(&policy).await? } else { 0 };
        let bar = progress(total, "Removing events");
        let policy = &policy;
        let run = run_batches(Some(self.max_batches), None, bar, |after| async move {
            operations.prune(policy, after, BATCH).await
        })
        .await?;
        say(format!("{} removed", events(run.changed)))?;
        if run.done {
            return Ok(());
        }
        Err(CommandError::remains(
            format!("pruning did not keep up: {} batches of {BATCH} were not enough", self.max_batches),
            "run it more often or with a higher --max-batches; what was removed stays removed",
        ))
    }
}

fn events(count: u64) -> String {
    if count == 1 { "1 event".into() } else { format!("{count} events") }
}
