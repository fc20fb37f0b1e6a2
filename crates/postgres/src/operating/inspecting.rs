//! Reading for people: the status, listings, one event's story.

use jiff::Timestamp;
use postbox_core::delivery::DeliveryState;
use postbox_core::operations::{
    COUNT_CAP, CappedCount, DeliveryStory, DestinationStatus, EventSummary, Page, RelayStatus, Selection,
    ShardOwner, ShardStatus, Status, Story,
};
use postbox_core::reports::ReportStory;
use postbox_core::store::StoreResult;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::read_count;
use super::selecting::{Chosen, words};
use crate::reading::{Columns, sql_count, unreadable};
use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) async fn read_status(&self) -> StoreResult<Status> {
        let what = "read the status";
        let health = self.operate(what, include_str!("health.sql"), &[]).await?;
        let destinations = self.operate(what, include_str!("destinations.sql"), &[]).await?;
        let relays = self.operate(what, include_str!("relays.sql"), &[]).await?;
        let row = health.first().ok_or_else(|| unreadable("the status", None))?;
        let mut columns = Columns::of(row, "the status");
        Ok(Status {
            now: columns.next()?,
            lag_seconds: columns.next::<f64>()?.max(0.0),
            oldest_event: columns.next()?,
            pending: capped(&mut columns)?,
            in_flight: columns.count()?,
            struggling: capped(&mut columns)?,
            dead: capped(&mut columns)?,
            unrouted: capped(&mut columns)?,
            destinations: destinations
                .iter()
                .map(|row| read_destination(&mut Columns::of(row, "a destination's status")))
                .collect::<StoreResult<_>>()?,
            relays: relays
                .iter()
                .map(|row| read_relay(&mut Columns::of(row, "a relay's status")))
                .collect::<StoreResult<_>>()?,
        })
    }

    pub(crate) async fn list_shards(&self) -> StoreResult<Vec<ShardStatus>> {
        let rows = self.operate("list shards", include_str!("shards.sql"), &[]).await?;
        rows.iter().map(|row| read_shard(&mut Columns::of(row, "a shard"))).collect()
    }

    pub(crate) async fn list_events(
        &self,
        selection: &Selection,
        page: Page,
    ) -> StoreResult<Vec<EventSummary>> {
        let chosen = Chosen::by(selection);
        let limit = i64::from(page.limit);
        let mut params = chosen.params().to_vec();
        params.extend([(&page.before as _, Type::INT8), (&limit as _, Type::INT8)]);
        let rows = self.operate("list events", include_str!("events.sql"), &params).await?;
        rows.iter().map(|row| read_summary(&mut Columns::of(row, "an event"))).collect()
    }

    pub(crate) async fn read_story(&self, event_id: Uuid, with_payload: bool) -> StoreResult<Option<Story>> {
        let rows = self
            .operate("read an event's story", include_str!("story.sql"), &[(&event_id, Type::UUID)])
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let only = Selection { event_ids: vec![event_id], ..Selection::default() };
        let everything = Page { before: None, limit: u32::MAX };
        let mut deliveries = self.list_deliveries(&only, &DeliveryState::ALL, everything).await?;
        deliveries.sort_by(|one, other| one.destination.cmp(&other.destination));
        let (payload, headers) =
            if with_payload { self.read_what_it_says(event_id).await? } else { Default::default() };
        let mut columns = Columns::of(row, "an event's story");
        let event = read_summary(&mut columns)?;
        let reports = self
            .operate("read reports on an event", include_str!("reports.sql"), &[(&event.id, Type::INT8)])
            .await?;
        Ok(Some(Story {
            event,
            shard: columns.shard()?,
            deliver_after: columns.next()?,
            expires_at: columns.next()?,
            payload_bytes: columns.count()?,
            payload,
            headers,
            deliveries,
            reports: reports
                .iter()
                .map(|row| read_report(&mut Columns::of(row, "a report")))
                .collect::<StoreResult<_>>()?,
        }))
    }

    /// Payload and headers. A statement of its own, so that roles that may not read them see the rest.
    async fn read_what_it_says(&self, event_id: Uuid) -> StoreResult<(Option<String>, Option<String>)> {
        let statement = "SELECT e.payload::text, e.headers::text FROM @.outbox e WHERE e.event_id = $1";
        let rows = self.operate("read an event's payload", statement, &[(&event_id, Type::UUID)]).await?;
        let Some(row) = rows.first() else {
            return Ok((None, None));
        };
        let mut columns = Columns::of(row, "an event's payload");
        Ok((columns.next()?, columns.next()?))
    }

    pub(crate) async fn list_deliveries(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
        page: Page,
    ) -> StoreResult<Vec<DeliveryStory>> {
        let (chosen, states) = (Chosen::by(selection), words(states));
        let limit = i64::from(sql_count(page.limit));
        let mut params = chosen.params().to_vec();
        params.extend([
            (&states as _, Type::TEXT_ARRAY),
            (&page.before as _, Type::INT8),
            (&limit as _, Type::INT8),
        ]);
        let rows = self.operate("list deliveries", include_str!("deliveries.sql"), &params).await?;
        rows.iter().map(|row| read_delivery(&mut Columns::of(row, "a delivery"))).collect()
    }

    pub(crate) async fn count_selected(
        &self,
        selection: &Selection,
        states: &[DeliveryState],
    ) -> StoreResult<u64> {
        let (chosen, states) = (Chosen::by(selection), words(states));
        let mut params = chosen.params().to_vec();
        params.push((&states, Type::TEXT_ARRAY));
        let rows = self.operate("count deliveries", include_str!("count_deliveries.sql"), &params).await?;
        read_count(&rows)
    }
}

fn read_report(columns: &mut Columns<'_>) -> StoreResult<ReportStory> {
    Ok(ReportStory {
        external_id: columns.next()?,
        attempt: columns.next::<Option<i32>>()?.and_then(|attempt| u32::try_from(attempt).ok()),
        status: columns.next()?,
        at: columns.next()?,
        error: columns.next()?,
    })
}

fn capped(columns: &mut Columns<'_>) -> StoreResult<CappedCount> {
    let counted: u64 = columns.count()?;
    Ok(CappedCount { value: counted.min(COUNT_CAP), capped: counted > COUNT_CAP })
}

fn read_summary(columns: &mut Columns<'_>) -> StoreResult<EventSummary> {
    Ok(EventSummary {
        id: columns.next()?,
        event_id: columns.next()?,
        aggregate_type: columns.next()?,
        aggregate_id: columns.next()?,
        aggregate_seq: columns.next()?,
        event_type: columns.next()?,
        created_at: columns.next()?,
        state: columns.next()?,
    })
}

fn read_delivery(columns: &mut Columns<'_>) -> StoreResult<DeliveryStory> {
    Ok(DeliveryStory {
        id: columns.next()?,
        event_id: columns.next()?,
        event_type: columns.next()?,
        aggregate_type: columns.next()?,
        aggregate_id: columns.next()?,
        aggregate_seq: columns.next()?,
        destination: columns.next()?,
        state: columns.next()?,
        attempts: columns.count()?,
        replays: columns.count()?,
        begun: columns.next::<Option<i64>>()?.and_then(|begun| u32::try_from(begun).ok()),
        next_attempt_at: columns.next()?,
        sent_at: columns.next()?,
        status: columns.next::<Option<i64>>()?.and_then(|status| u16::try_from(status).ok()),
        external_id: columns.next()?,
        last_error: columns.next()?,
        history: serde_json::from_str(columns.next()?)
            .map_err(|_| unreadable("a delivery's history", None))?,
    })
}

fn read_destination(columns: &mut Columns<'_>) -> StoreResult<DestinationStatus> {
    Ok(DestinationStatus {
        name: columns.next()?,
        retry: capped(columns)?,
        waiting: capped(columns)?,
        held: capped(columns)?,
        dead: capped(columns)?,
        oldest_seconds: columns.next::<Option<f64>>()?.map(|age| age.max(0.0)),
        last_error: columns.next()?,
    })
}

fn read_relay(columns: &mut Columns<'_>) -> StoreResult<RelayStatus> {
    Ok(RelayStatus {
        relay: columns.next()?,
        label: columns.next()?,
        shards: columns.count()?,
        epoch: columns.next()?,
        in_flight: columns.count()?,
        started_at: columns.next::<Timestamp>()?,
        lease_seconds: columns.next()?,
        destinations_version: columns.next()?,
        // Written by a program; what it cannot be read from says nothing of the rest.
        blocked: serde_json::from_str(columns.next()?).unwrap_or_default(),
    })
}

fn read_shard(columns: &mut Columns<'_>) -> StoreResult<ShardStatus> {
    let (shard, epoch) = (columns.shard()?, columns.next()?);
    let relay: Option<Uuid> = columns.next()?;
    let owner = relay
        .map(|relay| {
            StoreResult::Ok(ShardOwner {
                relay,
                label: columns.next()?,
                held_seconds: columns.next::<f64>()?.max(0.0),
                lease_seconds: columns.next()?,
            })
        })
        .transpose()?;
    Ok(ShardStatus { shard, epoch, owner })
}
