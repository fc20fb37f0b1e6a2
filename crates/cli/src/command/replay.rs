//! `postbox replay`: events that were delivered before go out again, marked as repeated.

use clap::{Args, ValueEnum};
use postbox_core::delivery::DeliveryState;
use uuid::Uuid;

use crate::cli::Global;
use crate::command::dead_letters::{Action, Care, change_deliveries};
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::selection::Filters;

/// Send events again that were delivered before.
///
/// Each goes out with its old event id and the header postbox-replay: true, in lane order.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// These events only.
    #[arg(value_name = "EVENT_ID")]
    event_ids: Vec<Uuid>,

    #[command(flatten)]
    filters: Filters,

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
}

impl Replay {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let selection = self.filters.selection(&self.event_ids);
        self.care.require_choice(&selection)?;
        let database = Database::open(&Target::find(global)?)?;
        let state = match self.state {
            FinishedState::Delivered => DeliveryState::Delivered,
            FinishedState::Discarded => DeliveryState::Discarded,
        };
        change_deliveries(database.operations(), &selection, &[state], &self.care, Action::Replay).await
    }
}
