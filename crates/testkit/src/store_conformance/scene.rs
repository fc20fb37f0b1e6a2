//! A relay on a fresh database, and the steps that behaviours are told in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use postbox_core::delivery::{AttemptFailure, DeliveryRecord, DeliveryState, ParkedLane};
use postbox_core::event::{Event, NewEvent, OutboxId, SHARD_COUNT, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term};
use postbox_core::operations::{DeliveryStory, Operations, Page, Selection, Story};
use postbox_core::store::{Arrival, DueRequest, ScanRequest, SettleBatch, SettleReport, ShardScan, Store};
use uuid::Uuid;

use super::harness::StoreHarness;

/// The destination most behaviours use.
pub(super) const BILLING: &str = "billing";
/// Another one.
pub(super) const AUDIT: &str = "audit";

/// Far longer than a test takes.
pub(super) const HOUR: Duration = Duration::from_secs(3_600);
/// A day.
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// A lease that outlives all the time that a behaviour lets pass.
pub(super) const LASTING: Duration = Duration::from_secs(86_400 * 3_650);

/// Every page in one.
pub(super) const WHOLE: Page = Page { before: None, limit: 1_000 };

/// A database with one relay that owns every shard.
pub(super) struct Scene<'a> {
    pub(super) harness: &'a dyn StoreHarness,
    pub(super) store: Arc<dyn Store>,
    pub(super) operations: Arc<dyn Operations>,
    pub(super) relay: RelayId,
    pub(super) terms: BTreeMap<Shard, Term>,
}

impl<'a> Scene<'a> {
    pub(super) async fn new(harness: &'a dyn StoreHarness) -> Self {
        let store = harness.store().await;
        let operations = harness.operations().await;
        let relay = Uuid::now_v7();
        let lasting = Heartbeat { ttl: LASTING, ..heartbeat(relay) };
        let answer = store.heartbeat(&lasting, false).await.expect("heartbeat");
        let terms = held(answer).into_iter().map(|term| (term.shard, term)).collect();
        Self { harness, store, operations, relay, terms }
    }

    /// Commits one event per aggregate id given, in one transaction, and returns them as the store reads them.
    pub(super) async fn commit(&self, aggregates: &[&str]) -> Vec<Arc<Event>> {
        let events: Vec<NewEvent> = aggregates.iter().map(|aggregate| order(aggregate)).collect();
        self.commit_events(&events).await
    }

    /// Commits `events`, each with an `event_id`, and returns them as the store reads them.
    pub(super) async fn commit_events(&self, events: &[NewEvent]) -> Vec<Arc<Event>> {
        self.harness.commit(events).await.expect("the events can be written");
        let pending: BTreeMap<Uuid, Arc<Event>> =
            self.pending().await.into_iter().map(|arrival| (arrival.event.event_id, arrival.event)).collect();
        events
            .iter()
            .map(|event| {
                let id = event.event_id.expect("the suite draws its ids");
                Arc::clone(pending.get(&id).expect("a committed event is on the to-do list"))
            })
            .collect()
    }

    /// The whole to-do list, in order of id.
    pub(super) async fn pending(&self) -> Vec<Arrival> {
        let scan = self.store.scan(&whole_scan()).await.expect("scan");
        let mut arrivals: Vec<Arrival> = scan
            .rows
            .into_iter()
            .map(|row| row.arrival.expect("beyond the cursor events come along"))
            .collect();
        arrivals.sort_by_key(|arrival| arrival.event.id);
        arrivals
    }

    /// Ids on the to-do list.
    pub(super) async fn pending_ids(&self) -> BTreeSet<OutboxId> {
        self.pending().await.iter().map(|arrival| arrival.event.id).collect()
    }

    fn batch(&self, records: Vec<DeliveryRecord>) -> SettleBatch {
        let shards: BTreeSet<Shard> = records.iter().map(|record| record.shard).collect();
        SettleBatch {
            terms: shards.into_iter().map(|shard| self.terms[&shard]).collect(),
            dispatched: Vec::new(),
            records,
        }
    }

    /// The batch that records `records` and takes their events off the to-do list.
    pub(super) fn dispatching(&self, records: Vec<DeliveryRecord>) -> SettleBatch {
        let dispatched: BTreeSet<(Shard, OutboxId)> =
            records.iter().map(|record| (record.shard, record.id)).collect();
        SettleBatch { dispatched: dispatched.into_iter().collect(), ..self.batch(records) }
    }

    /// Records the first outcomes of events: they leave the to-do list.
    pub(super) async fn dispatch(&self, records: Vec<DeliveryRecord>) {
        let batch = self.dispatching(records);
        self.apply(&batch).await;
    }

    /// Records outcomes of parked deliveries.
    pub(super) async fn settle(&self, records: Vec<DeliveryRecord>) {
        let batch = self.batch(records);
        self.apply(&batch).await;
    }

    pub(super) async fn apply(&self, batch: &SettleBatch) {
        let report = self.store.settle(batch, self.relay).await.expect("settle");
        assert_eq!(report, SettleReport::default(), "a term of this relay was refused");
    }

    /// Lanes of `destination` that are due, with up to 100 deliveries each.
    pub(super) async fn due(&self, destination: &str) -> Vec<ParkedLane> {
        let request = DueRequest {
            shards: all_shards(),
            destinations: vec![(destination.into(), 100)],
            rows_per_lane: 100,
        };
        self.store.due(&request).await.expect("due")
    }

    /// Ids of the events that are due on `destination`, lane by lane.
    pub(super) async fn due_ids(&self, destination: &str) -> Vec<Vec<OutboxId>> {
        self.due(destination)
            .await
            .iter()
            .map(|lane| lane.deliveries.iter().map(|delivery| delivery.event.id).collect())
            .collect()
    }

    pub(super) async fn story(&self, event: &Event) -> Story {
        self.operations.story(event.event_id, true).await.expect("story").expect("the event exists")
    }

    /// What is known of `event` on `destination`.
    pub(super) async fn delivery(&self, event: &Event, destination: &str) -> DeliveryStory {
        self.story(event)
            .await
            .deliveries
            .into_iter()
            .find(|delivery| delivery.destination == destination)
            .unwrap_or_else(|| panic!("nothing is recorded of event {} on {destination:?}", event.id))
    }

    /// States of `events` on `destination`, in words.
    pub(super) async fn states(&self, events: &[Arc<Event>], destination: &str) -> Vec<String> {
        let mut states = Vec::new();
        for event in events {
            states.push(self.delivery(event, destination).await.state);
        }
        states
    }

    /// Every lane has its lowest unfinished delivery as its head, and only that one.
    pub(super) async fn assert_heads(&self) {
        let unfinished = self
            .operations
            .deliveries(
                &Selection::default(),
                &[DeliveryState::Retry, DeliveryState::Waiting, DeliveryState::Held],
                WHOLE,
            )
            .await
            .expect("deliveries");
        let mut lanes: BTreeMap<(String, String, String), BTreeMap<OutboxId, String>> = BTreeMap::new();
        for delivery in unfinished {
            lanes
                .entry((delivery.destination, delivery.aggregate_type, delivery.aggregate_id))
                .or_default()
                .insert(delivery.id, delivery.state);
        }
        for (lane, states) in lanes {
            for (position, (id, state)) in states.iter().enumerate() {
                let is_head = state != "waiting";
                assert_eq!(is_head, position == 0, "event {id} is {state} in lane {lane:?}: {states:?}");
            }
        }
    }
}

/// An event of aggregate `order`/`aggregate`.
pub(super) fn order(aggregate: &str) -> NewEvent {
    let payload = serde_json::json!({ "order": aggregate });
    let event = NewEvent::new("order", aggregate, "order.confirmed", &payload).expect("a JSON value");
    NewEvent { event_id: Some(Uuid::now_v7()), ..event }
}

/// An event whose payload is exactly `text`.
pub(super) fn order_with_payload(aggregate: &str, text: &str) -> NewEvent {
    let raw = serde_json::value::RawValue::from_string(text.to_owned()).expect("the text is JSON");
    NewEvent { payload: raw, ..order(aggregate) }
}

pub(super) fn all_shards() -> Vec<Shard> {
    (0..SHARD_COUNT).collect()
}

/// From the very beginning, without any bound that matters.
pub(super) fn whole_scan() -> ScanRequest {
    ScanRequest {
        shards: all_shards().into_iter().map(|shard| ShardScan { shard, floor: 0, cursor: 0 }).collect(),
        rows_per_shard: 10_000,
        rows_per_lane: 10_000,
        saturated: Vec::new(),
    }
}

pub(super) fn heartbeat(relay: RelayId) -> Heartbeat {
    Heartbeat::new(relay, "test:1", HOUR)
}

/// The first heartbeat of `relay`.
pub(super) async fn join(store: &dyn Store, relay: RelayId) -> LeaseAnswer {
    store.heartbeat(&heartbeat(relay), false).await.expect("heartbeat")
}

/// A further heartbeat of `relay`.
pub(super) async fn renew(store: &dyn Store, relay: RelayId) -> LeaseAnswer {
    store.heartbeat(&heartbeat(relay), true).await.expect("heartbeat")
}

/// The terms of a lease that holds.
pub(super) fn held(answer: LeaseAnswer) -> Vec<Term> {
    match answer {
        LeaseAnswer::Held { terms, .. } => terms,
        LeaseAnswer::Evicted => panic!("the relay was evicted"),
    }
}

/// A record of `event` on `destination`; `Retry` is due in an hour, failed states report their first attempt.
pub(super) fn record(event: &Event, destination: &str, state: DeliveryState) -> DeliveryRecord {
    let tried = matches!(state, DeliveryState::Retry | DeliveryState::Held | DeliveryState::Dead);
    let delivered = state == DeliveryState::Delivered;
    DeliveryRecord {
        id: event.id,
        lane_id: event.lane_id,
        shard: event.shard,
        destination: destination.into(),
        state,
        attempts: u32::from(tried || delivered),
        uncounted: 0,
        withdrawn: false,
        retry_in: (state == DeliveryState::Retry).then_some(HOUR),
        status: if delivered {
            Some(200)
        } else if tried {
            Some(503)
        } else {
            None
        },
        external_id: None,
        failure: tried.then(|| failure("answered 503 Service Unavailable")),
    }
}

pub(super) fn failure(reason: &str) -> AttemptFailure {
    AttemptFailure {
        class: "transient",
        reason: reason.to_owned(),
        answer: Some("try later".to_owned()),
        took: Duration::from_millis(12),
    }
}

/// Selects one event.
pub(super) fn only(event: &Event) -> Selection {
    Selection { event_ids: vec![event.event_id], ..Selection::default() }
}
