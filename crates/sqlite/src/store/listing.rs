//! Looking things up: listings, counts, and the story of one event.

use postbox_core::delivery::DeliveryState;
use postbox_core::event::OutboxId;
use postbox_core::operations::{DeliveryStory, EventSummary, Page, Selection, Story};
use postbox_core::reports::ReportStory;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params_from_iter};
use uuid::Uuid;

use super::clock;
use super::event::{bytes, optional_text, text, uuid};
use super::failure::Attempt;
use super::history;
use super::selection::Filter;

const EVENTS: &str = include_str!("sql/events.sql");
const DELIVERIES: &str = include_str!("sql/deliveries.sql");

/// Events that `selection` is about, newest first.
pub(crate) fn events(
    connection: &Connection,
    selection: &Selection,
    page: Page,
) -> Attempt<Vec<EventSummary>> {
    let mut filter = Filter::events(selection);
    if let Some(before) = page.before {
        filter.and("e.id < ?", before);
    }
    let sql = format!("{EVENTS} WHERE {} ORDER BY e.id DESC LIMIT {}", filter.sql(), page.limit);
    query(connection, &sql, filter.values(), event_summary)
}

/// Deliveries in one of `states` that `selection` is about, newest first. The last event of a page comes with all of
/// its deliveries, a few more than the limit if need be, since the next page begins behind that event.
pub(crate) fn deliveries(
    connection: &mut Connection,
    selection: &Selection,
    states: &[DeliveryState],
    page: Page,
) -> Attempt<Vec<DeliveryStory>> {
    let snapshot = connection.transaction()?;
    let mut filter = Filter::deliveries(selection, states);
    if let Some(before) = page.before {
        filter.and("d.outbox_id < ?", before);
    }
    let mut rows = delivery_rows(&snapshot, &filter, Some(page.limit))?;
    let cut = usize::try_from(page.limit).is_ok_and(|limit| rows.len() >= limit);
    if let Some(last) = rows.last().map(|row| row.id).filter(|_| cut) {
        rows.retain(|row| row.id != last);
        filter.and("d.outbox_id = ?", last);
        rows.extend(delivery_rows(&snapshot, &filter, None)?);
    }
    Ok(rows)
}

/// How many deliveries in one of `states` `selection` is about.
pub(crate) fn count_deliveries(
    connection: &Connection,
    selection: &Selection,
    states: &[DeliveryState],
) -> Attempt<u64> {
    let filter = Filter::deliveries(selection, states);
    let sql = format!("SELECT count(*) AS count FROM {} WHERE {}", filter.joined_tables(), filter.sql());
    let count = connection.query_row(&sql, params_from_iter(filter.values()), |row| bytes(row, "count"))?;
    Ok(count)
}

/// Everything known of one event.
pub(crate) fn story(
    connection: &mut Connection,
    event_id: Uuid,
    with_payload: bool,
) -> Attempt<Option<Story>> {
    let snapshot = connection.transaction()?;
    let selection = Selection { event_ids: vec![event_id], ..Selection::default() };
    let found = snapshot
        .prepare_cached(&format!("{EVENTS} WHERE e.event_id = ?1"))?
        .query_row([event_id.to_string()], story_of_event)
        .optional()?;
    let Some(mut story) = found else { return Ok(None) };
    story.deliveries = delivery_rows(&snapshot, &Filter::deliveries(&selection, &DeliveryState::ALL), None)?;
    story.reports = snapshot
        .prepare_cached(include_str!("sql/reports.sql"))?
        .query_map(named_params! { ":id": story.event.id }, report_story)?
        .collect::<rusqlite::Result<_>>()?;
    if with_payload {
        (story.payload, story.headers) = texts_of_event(&snapshot, story.event.id)?;
    }
    Ok(Some(story))
}

fn delivery_rows(
    connection: &Connection,
    filter: &Filter,
    limit: Option<u32>,
) -> Attempt<Vec<DeliveryStory>> {
    let sql = format!(
        "{DELIVERIES} FROM {} WHERE {} ORDER BY d.outbox_id DESC, d.destination LIMIT {}",
        filter.joined_tables(),
        filter.sql(),
        limit.map_or(-1, i64::from),
    );
    query(connection, &sql, filter.values(), delivery_story)
}

fn query<T>(
    connection: &Connection,
    sql: &str,
    values: &[Value],
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Attempt<Vec<T>> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(params_from_iter(values), read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn report_story(row: &Row<'_>) -> rusqlite::Result<ReportStory> {
    let code: Option<i32> = row.get("error_code")?;
    let error = optional_text(row, "error")?.unwrap_or_default();
    Ok(ReportStory {
        external_id: text(row, "external_id")?,
        attempt: row.get("attempt")?,
        status: text(row, "status")?,
        at: clock::timestamp(row, "reported_at")?,
        error: code.map(|code| format!("{code} {error}").trim_end().to_owned()),
    })
}

fn event_summary(row: &Row<'_>) -> rusqlite::Result<EventSummary> {
    Ok(EventSummary {
        id: row.get("id")?,
        event_id: uuid(row, "event_id")?,
        aggregate_type: text(row, "aggregate_type")?,
        aggregate_id: text(row, "aggregate_id")?,
        aggregate_seq: row.get("aggregate_seq")?,
        event_type: text(row, "event_type")?,
        created_at: clock::timestamp(row, "created_at")?,
        state: text(row, "state")?,
    })
}

fn story_of_event(row: &Row<'_>) -> rusqlite::Result<Story> {
    Ok(Story {
        event: event_summary(row)?,
        shard: row.get("shard")?,
        deliver_after: clock::optional_timestamp(row, "deliver_after")?,
        expires_at: clock::optional_timestamp(row, "expires_at")?,
        payload_bytes: bytes(row, "payload_bytes")?,
        payload: None,
        headers: None,
        deliveries: Vec::new(),
        reports: Vec::new(),
    })
}

/// Payload and headers.
fn texts_of_event(
    connection: &Connection,
    id: OutboxId,
) -> rusqlite::Result<(Option<String>, Option<String>)> {
    connection.query_row("SELECT payload, headers FROM outbox WHERE id = ?1", [id], |row| {
        Ok((optional_text(row, "payload")?, optional_text(row, "headers")?))
    })
}

fn delivery_story(row: &Row<'_>) -> rusqlite::Result<DeliveryStory> {
    Ok(DeliveryStory {
        id: row.get("outbox_id")?,
        event_id: uuid(row, "event_id")?,
        event_type: text(row, "event_type")?,
        aggregate_type: text(row, "aggregate_type")?,
        aggregate_id: text(row, "aggregate_id")?,
        aggregate_seq: row.get("aggregate_seq")?,
        destination: text(row, "destination")?,
        state: text(row, "state")?,
        attempts: row.get("attempts")?,
        replays: row.get("replays")?,
        begun: row.get("begun")?,
        next_attempt_at: clock::optional_timestamp(row, "next_attempt_at")?,
        sent_at: clock::optional_timestamp(row, "sent_at")?,
        status: row.get("status")?,
        external_id: optional_text(row, "external_id")?,
        last_error: optional_text(row, "last_error")?,
        history: history::parse(optional_text(row, "history")?.as_deref()),
    })
}
