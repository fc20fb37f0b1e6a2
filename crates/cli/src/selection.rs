//! The filters that several commands share.

use clap::Args;
use jiff::Timestamp;
use postbox_core::operations::Selection;
use uuid::Uuid;

use crate::moment::parse_moment;

/// Conditions on an event; all that are given must hold.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Filters {
    /// Deliveries to this destination.
    #[arg(long, value_name = "NAME")]
    pub(crate) destination: Option<String>,

    /// Event type; * stands for any run of characters.
    #[arg(long = "type", value_name = "GLOB")]
    pub(crate) event_type: Option<String>,

    /// Type of the aggregate.
    #[arg(long, value_name = "TYPE")]
    pub(crate) aggregate_type: Option<String>,

    /// Id of the aggregate.
    #[arg(long, value_name = "ID")]
    pub(crate) aggregate_id: Option<String>,

    /// Written at or after: 2026-01-31T10:15:00Z, 2026-01-31, or how long ago: 2h, 7d.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(crate) since: Option<Timestamp>,

    /// Written before.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(crate) until: Option<Timestamp>,
}

impl Filters {
    /// The selection, for these events only unless `event_ids` is empty.
    pub(crate) fn selection(&self, event_ids: &[Uuid]) -> Selection {
        Selection {
            event_ids: event_ids.to_vec(),
            destination: self.destination.clone(),
            event_type: self.event_type.clone(),
            aggregate_type: self.aggregate_type.clone(),
            aggregate_id: self.aggregate_id.clone(),
            created_from: self.since,
            created_to: self.until,
            sent_before: None,
        }
    }
}

/// Whether `selection` is about everything.
pub(crate) fn is_everything(selection: &Selection) -> bool {
    selection.event_ids.is_empty()
        && selection.destination.is_none()
        && selection.event_type.is_none()
        && selection.aggregate_type.is_none()
        && selection.aggregate_id.is_none()
        && selection.created_from.is_none()
        && selection.created_to.is_none()
}

/// Which page of a listing.
#[derive(Debug, Clone, Args)]
pub(crate) struct Paging {
    /// Rows to show, 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// Continue below this id, as the end of the page before says.
    #[arg(long, value_name = "ID")]
    pub(crate) before: Option<i64>,
}
