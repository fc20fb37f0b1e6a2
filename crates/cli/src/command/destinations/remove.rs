//! `postbox destinations remove`.
//!
//! The row goes first. Relays that have taken that over keep nothing more for the destination; what they had in flight
//! is recorded, what they held is discarded. Only then is what is parked for it discarded here, so that nothing can be
//! parked behind our back and stay for ever.

use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;

use super::directory::Directory;
use crate::batch::{is_watched, progress};
use crate::command::dead_letters::BATCH;
use crate::config::{parse_duration, show_duration};
use crate::confirm::confirm;
use crate::error::CommandError;
use crate::output::say;

/// Pause between two looks at what relays have taken over.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What is written to each delivery that is discarded.
const REASON: &str = "the destination was removed";

/// Remove an endpoint. Refused while something is kept for it, unless --discard.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The endpoint; with --discard also a destination that is in no configuration file any more.
    name: String,

    /// Discard what is kept for it.
    #[arg(long)]
    discard: bool,

    /// How long to wait until every running relay has let go of it.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    wait: Duration,

    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

impl Remove {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        let (name, operations) = (&self.name, directory.operations());
        let kept = directory.unfinished(name).await?;
        let left_over = kept > 0
            && self.discard
            && directory.in_file(name).is_none()
            && operations.find_endpoint(name).await?.is_none();
        if !left_over {
            directory.endpoint(name).await?;
        }
        if kept > 0 && !self.discard {
            return Err(CommandError::remains(
                format!("{} kept for {name:?}", deliveries(kept)),
                "let them be sent first, give them up with --discard, or only stop sending: \
                 postbox destinations disable",
            ));
        }
        if kept > 0 {
            confirm(&format!("Discard {} to {name}?", deliveries(kept)), self.yes)?;
        }
        let version = operations.remove_endpoint(name).await?;
        if let Some(version) = version {
            self.wait_for_relays(directory, version).await?;
        }
        let discarded = if self.discard { self.discard_all(directory, kept).await? } else { 0 };
        let gone = if version.is_some() { "removed" } else { "is not there any more" };
        say(match discarded {
            0 => format!("{name} {gone}"),
            _ => format!("{name} {gone}, {} discarded", deliveries(discarded)),
        })?;
        self.complain_about_the_rest(directory).await
    }

    async fn discard_all(&self, directory: &Directory, kept: u64) -> Result<u64, CommandError> {
        let bar = progress(kept, "Discard");
        let mut discarded = 0;
        loop {
            let batch = directory.operations().discard_removed(&self.name, REASON, BATCH).await?;
            discarded += batch;
            bar.set_position(discarded);
            if batch < u64::from(BATCH) {
                bar.finish_and_clear();
                return Ok(discarded);
            }
        }
    }

    /// Something may have been parked between the count and the removal.
    async fn complain_about_the_rest(&self, directory: &Directory) -> Result<(), CommandError> {
        match directory.unfinished(&self.name).await? {
            0 => Ok(()),
            rest => Err(CommandError::remains(
                format!("{} of {:?} were parked meanwhile", deliveries(rest), self.name),
                format!("discard them: postbox destinations remove {} --discard", self.name),
            )),
        }
    }

    /// Waits until every live relay works without it. One that does not answer holds nobody up for ever: what it parks
    /// later is shown and can be discarded then.
    async fn wait_for_relays(&self, directory: &Directory, version: i64) -> Result<(), CommandError> {
        let began = Instant::now();
        let bar = if is_watched() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        loop {
            let status = directory.operations().status().await?;
            let behind = status
                .relays
                .iter()
                .filter(|relay| relay.lease_seconds > 0.0 && relay.destinations_version < version);
            let behind: Vec<&str> = behind.map(|relay| relay.label.as_str()).collect();
            if behind.is_empty() {
                bar.finish_and_clear();
                return Ok(());
            }
            if began.elapsed() >= self.wait {
                bar.finish_and_clear();
                eprintln!(
                    "after {} these relays have not taken the removal over: {}; what they still park is shown by \
                     `postbox status`",
                    show_duration(self.wait),
                    behind.join(", ")
                );
                return Ok(());
            }
            bar.set_message(format!("waiting for {}", behind.join(", ")));
            bar.tick();
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }
}

fn deliveries(count: u64) -> String {
    if count == 1 { "1 delivery is".into() } else { format!("{count} deliveries are") }
}
