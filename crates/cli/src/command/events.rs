//! `postbox events`: which events there are, and what became of one.

use clap::{Args, Subcommand, ValueEnum};
use postbox_core::delivery::DeliveryState;
use postbox_core::operations::{EventSummary, Operations, Page};
use serde::Serialize;
use uuid::Uuid;

use crate::cli::Global;
use crate::command::story::tell;
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::moment::show_moment;
use crate::output::{say, say_json, table};
use crate::selection::{Filters, Paging};

/// Rows read per look while events of a state are searched for.
const SEARCH_ROWS: u32 = 1_000;

/// Looks at most, so that a search on a large table ends; it says so when it stopped there.
const SEARCH_LOOKS: u32 = 100;

/// Look at events.
#[derive(Debug, Subcommand)]
pub(crate) enum Events {
    /// List events, newest first.
    List(List),
    /// Tell the whole story of one event: stored, attempts, answers, receipts.
    Show(Show),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    filters: Filters,

    /// Only events that are pending, delivered everywhere, or have a delivery in this state.
    #[arg(long, value_enum, help_heading = "Filters")]
    state: Option<EventState>,

    #[command(flatten)]
    paging: Paging,

    /// Print JSON: {"events": [...], "next_before": id or null}.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The event's id (a UUID), as `postbox events list` shows it.
    event_id: Uuid,

    /// Include the payload and the stored headers, which may hold personal data.
    #[arg(long)]
    payload: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// States that can be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventState {
    Pending,
    Delivered,
    Retry,
    Waiting,
    Held,
    Dead,
    Discarded,
    Expired,
    Unrouted,
}

impl EventState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Retry => "retry",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Dead => "dead",
            Self::Discarded => "discarded",
            Self::Expired => "expired",
            Self::Unrouted => "unrouted",
        }
    }
}

/// A page of events and where the next one begins.
#[derive(Debug, Serialize)]
struct Listing {
    events: Vec<EventSummary>,
    next_before: Option<i64>,
    #[serde(skip)]
    gave_up: bool,
}

impl Events {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let database = Database::open(&Target::find(global)?)?;
        match self {
            Self::List(list) => list.run(database.operations()).await,
            Self::Show(show) => show.run(database.operations()).await,
        }
    }
}

impl List {
    async fn run(&self, operations: &dyn Operations) -> Result<(), CommandError> {
        let listing = match self.state {
            None => self.page(operations).await?,
            Some(EventState::Pending | EventState::Delivered) => self.search(operations).await?,
            Some(exception) => self.exceptions(operations, exception).await?,
        };
        if self.json {
            return say_json(&listing);
        }
        if listing.events.is_empty() && !listing.gave_up {
            return say("no events");
        }
        let rows = listing.events.iter().map(|event| {
            [
                event.id.to_string(),
                event.event_id.to_string(),
                show_moment(event.created_at),
                event.state.clone(),
                event.event_type.clone(),
                format!("{} {}", event.aggregate_type, event.aggregate_id),
                event.aggregate_seq.to_string(),
            ]
        });
        say(table(["ID", "EVENT", "WRITTEN", "STATE", "TYPE", "AGGREGATE", "SEQ"], rows))?;
        match listing.next_before {
            Some(id) if listing.gave_up => {
                say(format!("\nstopped searching here; continue with --before {id}"))
            }
            Some(id) => say(format!("\nmore with --before {id}")),
            None => Ok(()),
        }
    }

    async fn page(&self, operations: &dyn Operations) -> Result<Listing, CommandError> {
        let page = Page { before: self.paging.before, limit: self.paging.limit };
        let events = operations.events(&self.filters.selection(&[]), page).await?;
        Ok(Listing { next_before: next(&events, self.paging.limit), events, gave_up: false })
    }

    /// Most events are in one of these two states, so the newest ones are looked through.
    async fn search(&self, operations: &dyn Operations) -> Result<Listing, CommandError> {
        let wanted = self.state.map_or("", EventState::as_str);
        let limit = self.paging.limit as usize;
        let selection = self.filters.selection(&[]);
        let mut found = Vec::new();
        let mut before = self.paging.before;
        for _ in 0..SEARCH_LOOKS {
            let seen = operations.events(&selection, Page { before, limit: SEARCH_ROWS }).await?;
            let end = next(&seen, SEARCH_ROWS);
            found.extend(seen.into_iter().filter(|event| event.state == wanted));
            if found.len() >= limit {
                let more = found.len() > limit || end.is_some();
                found.truncate(limit);
                let next_before = if more { found.last().map(|event| event.id) } else { None };
                return Ok(Listing { next_before, events: found, gave_up: false });
            }
            let Some(end) = end else {
                return Ok(Listing { events: found, next_before: None, gave_up: false });
            };
            before = Some(end);
        }
        Ok(Listing { events: found, next_before: before, gave_up: true })
    }

    /// Exceptions are few and have indexes of their own: find the deliveries, then their events.
    async fn exceptions(
        &self,
        operations: &dyn Operations,
        state: EventState,
    ) -> Result<Listing, CommandError> {
        let state = DeliveryState::parse(state.as_str()).into_iter().collect::<Vec<_>>();
        let limit = self.paging.limit;
        let page = Page { before: self.paging.before, limit };
        let deliveries = operations.deliveries(&self.filters.selection(&[]), &state, page).await?;
        let full = deliveries.len() >= limit as usize;
        let next_before = deliveries.last().filter(|_| full).map(|delivery| delivery.id);
        let mut ids: Vec<Uuid> = deliveries.iter().map(|delivery| delivery.event_id).collect();
        ids.dedup();
        let events = match ids.is_empty() {
            true => Vec::new(),
            false => {
                operations.events(&Filters::default().selection(&ids), Page { before: None, limit }).await?
            }
        };
        Ok(Listing { events, next_before, gave_up: false })
    }
}

fn next(events: &[EventSummary], limit: u32) -> Option<i64> {
    events.last().filter(|_| events.len() >= limit as usize).map(|event| event.id)
}

impl Show {
    async fn run(&self, operations: &dyn Operations) -> Result<(), CommandError> {
        let Some(story) = operations.story(self.event_id, self.payload).await? else {
            return Err(CommandError::remains(
                format!("there is no event {}", self.event_id),
                "it may have been pruned, or it is in another database or schema; `postbox events list` shows what there is",
            ));
        };
        if self.json { say_json(&story) } else { say(tell(&story)) }
    }
}
