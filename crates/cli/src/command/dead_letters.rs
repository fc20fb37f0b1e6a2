//! `postbox dead-letters`: deliveries that wait for an operator, and the way back for them.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use postbox_core::delivery::DeliveryState;
use postbox_core::operations::{DeliveryStory, Operations, Page, Selection};
use serde::Serialize;
use uuid::Uuid;

use crate::batch::{progress, run_batches};
use crate::cli::Global;
use crate::command::story::{maybe_delivered, tell_delivery};
use crate::confirm::confirm;
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::output::{say, say_json, table};
use crate::selection::{Filters, Paging, is_everything};

/// Deliveries changed per transaction, which makes the relays of their shards wait.
pub(crate) const BATCH: u32 = 500;

/// Look at deliveries that were given up or are held, and send or discard them.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetters {
    /// List deliveries that were given up or are held, newest first.
    List(List),
    /// Tell the story of an event's dead or held deliveries.
    Show(Show),
    /// Send them again: attempts start anew, in lane order.
    Replay(Change),
    /// Decide that they shall not be sent; their lanes go on.
    Discard(Change),
}

/// States that wait for an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitingState {
    /// Given up; the lane went on.
    Dead,
    /// The lane waits.
    Held,
}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// These events only.
    #[arg(value_name = "EVENT_ID")]
    event_ids: Vec<Uuid>,

    #[command(flatten)]
    filters: Filters,

    /// Only dead ones or only held ones [default: both].
    #[arg(long, value_enum, help_heading = "Filters")]
    state: Option<WaitingState>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    paging: Paging,

    /// Print JSON: {"dead_letters": [...], "next_before": id or null}.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The event.
    event_id: Uuid,

    /// Only its delivery to this destination.
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Change {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    care: Care,
}

/// How careful a command that changes many rows shall be.
#[derive(Debug, Args)]
pub(crate) struct Care {
    /// All of them, when no filter is given.
    #[arg(long)]
    pub(crate) all: bool,

    /// Only say how many there are.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Change at most so many deliveries a second, so that new events are not crowded out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Listing {
    dead_letters: Vec<DeliveryStory>,
    next_before: Option<i64>,
}

/// What to do with the deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Replay,
    Discard,
}

impl DeadLetters {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        if let Self::Replay(change) | Self::Discard(change) = self {
            change.care.require_choice(&change.which.selection())?;
        }
        let database = Database::open(&Target::find(global)?)?;
        let operations = database.operations();
        match self {
            Self::List(list) => list.run(operations).await,
            Self::Show(show) => show.run(operations).await,
            Self::Replay(change) => change.run(operations, Action::Replay).await,
            Self::Discard(change) => change.run(operations, Action::Discard).await,
        }
    }
}

impl Which {
    fn selection(&self) -> Selection {
        self.filters.selection(&self.event_ids)
    }

    fn states(&self) -> Vec<DeliveryState> {
        match self.state {
            None => vec![DeliveryState::Dead, DeliveryState::Held],
            Some(WaitingState::Dead) => vec![DeliveryState::Dead],
            Some(WaitingState::Held) => vec![DeliveryState::Held],
        }
    }
}

impl List {
    async fn run(&self, operations: &dyn Operations) -> Result<(), CommandError> {
        let limit = self.paging.limit;
        let page = Page { before: self.paging.before, limit };
        let found = operations.deliveries(&self.which.selection(), &self.which.states(), page).await?;
        let next_before = found.last().filter(|_| found.len() >= limit as usize).map(|delivery| delivery.id);
        if self.json {
            return say_json(&Listing { dead_letters: found, next_before });
        }
        if found.is_empty() {
            return say("no dead letters");
        }
        let rows = found.iter().map(|delivery| {
            [
                delivery.event_id.to_string(),
                delivery.destination.clone(),
                delivery.state.clone(),
                delivery.attempts.to_string(),
                delivery.event_type.clone(),
                format!("{} {} #{}", delivery.aggregate_type, delivery.aggregate_id, delivery.aggregate_seq),
                why(delivery),
            ]
        });
        say(table(["EVENT", "DESTINATION", "STATE", "ATTEMPTS", "TYPE", "AGGREGATE", "LAST ERROR"], rows))?;
        match next_before {
            Some(id) => say(format!("\nmore with --before {id}")),
            None => Ok(()),
        }
    }
}

/// The last error, and whether the destination may have the event all the same.
fn why(delivery: &DeliveryStory) -> String {
    let error = delivery.last_error.as_deref().unwrap_or("-");
    if maybe_delivered(delivery) { format!("{error} (maybe delivered)") } else { error.to_owned() }
}

impl Show {
    async fn run(&self, operations: &dyn Operations) -> Result<(), CommandError> {
        let filters = Filters { destination: self.destination.clone(), ..Filters::default() };
        let states = [DeliveryState::Dead, DeliveryState::Held];
        let page = Page { before: None, limit: 1_000 };
        let found = operations.deliveries(&filters.selection(&[self.event_id]), &states, page).await?;
        if found.is_empty() {
            return Err(CommandError::remains(
                format!("event {} has no dead or held delivery", self.event_id),
                format!("`postbox events show {}` tells where it stands", self.event_id),
            ));
        }
        if self.json {
            return say_json(&Listing { dead_letters: found, next_before: None });
        }
        let stories: Vec<String> = found.iter().map(tell_delivery).collect();
        let first = &found[0];
        say(format!(
            "{} {} of {} {} #{}\n\n{}",
            first.event_type,
            first.event_id,
            first.aggregate_type,
            first.aggregate_id,
            first.aggregate_seq,
            stories.join("\n").trim_end()
        ))
    }
}

impl Change {
    async fn run(&self, operations: &dyn Operations, action: Action) -> Result<(), CommandError> {
        change_deliveries(operations, &self.which.selection(), &self.which.states(), &self.care, action).await
    }
}

impl Care {
    /// Without a filter the command would be about everything, which must be said.
    pub(crate) fn require_choice(&self, selection: &Selection) -> Result<(), CommandError> {
        if self.all || self.dry_run || !is_everything(selection) {
            return Ok(());
        }
        Err(CommandError::usage(
            "no filter was given, and this would be about every delivery",
            "give an event id or a filter such as --destination, or --all; --dry-run says how many there are",
        ))
    }
}

/// Counts, asks, then replays or discards batch by batch.
///
/// # Errors
/// When the database cannot, or the answer was no.
pub(crate) async fn change_deliveries(
    operations: &dyn Operations,
    selection: &Selection,
    states: &[DeliveryState],
    care: &Care,
    action: Action,
) -> Result<(), CommandError> {
    let (would, asks, did) = match action {
        Action::Replay => ("would be sent again", "Send", "put back to be sent again"),
        Action::Discard => ("would be discarded", "Discard", "discarded"),
    };
    let count = operations.count_deliveries(selection, states).await?;
    if care.dry_run {
        return say(format!("{} {would}", deliveries(count)));
    }
    if count == 0 {
        return say("nothing matches");
    }
    let again = if action == Action::Replay { " again" } else { "" };
    confirm(&format!("{asks} {}{again}?", deliveries(count)), care.yes)?;
    let bar = progress(count, asks);
    let batch = care.rate.map_or(BATCH, |rate| rate.min(BATCH));
    let pace = care.rate.map(|rate| Duration::from_secs(1) * batch / rate);
    let run = run_batches(None, pace, bar, |after| async move {
        match action {
            Action::Replay => operations.replay(selection, states, after, batch).await,
            Action::Discard => operations.discard(selection, states, after, batch).await,
        }
    })
    .await?;
    say(format!("{} {did}", deliveries(run.changed)))
}

fn deliveries(count: u64) -> String {
    if count == 1 { "1 delivery".into() } else { format!("{count} deliveries") }
}
