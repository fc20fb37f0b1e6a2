//! `postbox replay`: events that were delivered before go out again, marked as repeated.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use postbox_core::delivery::DeliveryState;
use uuid::Uuid;

use crate::cli::Global;
use crate::command::dead_letters::{Action, Care, change_deliveries};
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::moment::parse_moment;
use crate::output::say;
use crate::selection::Filters;

/// Send events again that were delivered before.
///
/// Each goes out with its old event id and the header postbox-replay: true, in lane order. What was put back stays so
/// when this command, a relay or the database is stopped; to continue an interrupted replay of delivered events, give
/// the --sent-before that it printed.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// These events only.
    #[arg(value_name = "EVENT_ID")]
    event_ids: Vec<Uuid>,

    #[command(flatten)]
    filters: Filters,

    /// Confirmed by the destination before: what was sent again since then is left out.
    #[arg(long, value_name = "TIME", value_parser = parse_moment, help_heading = "Filters")]
    sent_before: Option<Timestamp>,

    /// Which finished deliveries.
    #[arg(long, value_enum, default_value_t = FinishedState::Delivered, help_heading = "Filters")]
    state: FinishedState,

    #[command(flatten)]
    care: Care,
}

/// Finished states from which a delivery can be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FinishedState {
    /// Confirmed by the destination.
    Delivered,
    /// Discarded by an operator.
    Discarded,
    /// Without a destination when they were read: they are routed anew.
    Unrouted,
}

impl Replay {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let mut selection = self.filters.selection(&self.event_ids);
        selection.sent_before = self.sent_before;
        self.care.require_choice(&selection)?;
        let database = Database::open(&Target::find(global)?)?;
        let state = match self.state {
            FinishedState::Delivered => DeliveryState::Delivered,
            FinishedState::Discarded => DeliveryState::Discarded,
            FinishedState::Unrouted => DeliveryState::Unrouted,
        };
        if self.state == FinishedState::Delivered && self.event_ids.is_empty() && !self.care.dry_run {
            let before = match self.sent_before {
                Some(given) => given,
                None => database.operations().status().await?.now,
            };
            selection.sent_before = Some(before);
            let found = database.operations().count_deliveries(&selection, &[state]).await?;
            if found == 0 {
                return say("nothing matches");
            }
            eprintln!("an interrupted replay is continued by the same command with --sent-before {before}");
        }
        change_deliveries(database.operations(), &selection, &[state], &self.care, Action::Replay).await
    }
}
