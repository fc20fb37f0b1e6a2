//! Looking things up: listings, their filters and pages, and the whole story of one event.

use std::sync::Arc;

use jiff::{Timestamp, ToSpan};
use postbox_core::delivery::DeliveryState::{self, Dead, Delivered, Held, Retry, Waiting};
use postbox_core::event::{Event, NewEvent, OutboxId};
use postbox_core::operations::{Page, Selection};
use uuid::Uuid;

use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, HOUR, Scene, WHOLE, order, record};

/// Events are listed newest first, in pages that follow on each other.
pub async fn events_are_listed_newest_first_in_pages(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "1", "3", "1"]).await;
    let mut ids: Vec<OutboxId> = Vec::new();
    let mut before = None;
    for expected in [2, 2, 1, 0] {
        let page =
            scene.operations.events(&Selection::default(), Page { before, limit: 2 }).await.expect("events");
        assert_eq!(page.len(), expected);
        ids.extend(page.iter().map(|event| event.id));
        before = page.last().map(|event| event.id).or(before);
    }
    assert_eq!(ids, events.iter().rev().map(|event| event.id).collect::<Vec<_>>());
}

/// A listed event is pending while it is on the to-do list, then as far as its least finished delivery.
pub async fn a_listed_event_shows_its_least_finished_state(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3", "4", "5"]).await;
    scene
        .dispatch(vec![
            record(&events[1], BILLING, Delivered),
            record(&events[2], BILLING, Delivered),
            record(&events[2], AUDIT, Retry),
            record(&events[3], BILLING, Dead),
            record(&events[3], AUDIT, Delivered),
            record(&events[4], BILLING, Held),
            record(&events[4], AUDIT, Dead),
        ])
        .await;
    let listed = scene.operations.events(&Selection::default(), WHOLE).await.expect("events");
    let states: Vec<&str> = listed.iter().rev().map(|event| event.state.as_str()).collect();
    assert_eq!(states, ["pending", "delivered", "retry", "dead", "held"]);
}

/// Every condition of a selection holds at once, for events and for deliveries.
pub async fn selections_join_their_conditions(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let mut events = scene
        .commit_events(&[
            typed("order", "1", "order.confirmed"),
            typed("order", "2", "order.cancelled"),
            typed("invoice", "1", "invoice.sent"),
            typed("order", "1", "order_confirmed%"),
        ])
        .await;
    scene.harness.pass_time(HOUR).await;
    let middle = scene.operations.status().await.expect("status").now - 30.minutes();
    events.extend(scene.commit_events(&[typed("order", "1", "order.confirmed.late")]).await);
    scene
        .dispatch(
            events
                .iter()
                .flat_map(|event| [record(event, BILLING, Delivered), record(event, AUDIT, Delivered)])
                .filter(|record| record.id != events[1].id || &*record.destination != AUDIT)
                .collect(),
        )
        .await;
    let any = Selection::default;
    let cases: Vec<(Selection, &[usize])> = vec![
        (any(), &[0, 1, 2, 3, 4]),
        (Selection { event_ids: vec![events[1].event_id, events[4].event_id], ..any() }, &[1, 4]),
        (Selection { event_ids: vec![Uuid::now_v7()], ..any() }, &[]),
        (Selection { destination: Some(AUDIT.to_owned()), ..any() }, &[0, 2, 3, 4]),
        (Selection { destination: Some("nobody".to_owned()), ..any() }, &[]),
        (Selection { event_type: Some("order.confirmed".to_owned()), ..any() }, &[0]),
        (Selection { event_type: Some("order.*".to_owned()), ..any() }, &[0, 1, 4]),
        (Selection { event_type: Some("*ed".to_owned()), ..any() }, &[0, 1]),
        // `%` and `_` are ordinary characters of a glob.
        (Selection { event_type: Some("order_confirmed%".to_owned()), ..any() }, &[3]),
        (Selection { event_type: Some("%".to_owned()), ..any() }, &[]),
        (Selection { event_type: Some("o[r]der?*".to_owned()), ..any() }, &[]),
        (Selection { event_type: Some("Order.*".to_owned()), ..any() }, &[]),
        (Selection { aggregate_type: Some("invoice".to_owned()), ..any() }, &[2]),
        (Selection { aggregate_id: Some("1".to_owned()), ..any() }, &[0, 2, 3, 4]),
        (
            Selection {
                aggregate_type: Some("order".to_owned()),
                aggregate_id: Some("1".to_owned()),
                event_type: Some("order.*".to_owned()),
                ..any()
            },
            &[0, 4],
        ),
        (Selection { created_from: Some(middle), ..any() }, &[4]),
        (Selection { created_to: Some(middle), ..any() }, &[0, 1, 2, 3]),
        (Selection { created_from: Some(middle), created_to: Some(middle), ..any() }, &[]),
    ];
    for (selection, expected) in cases {
        let expected: Vec<OutboxId> = expected.iter().rev().map(|&index| events[index].id).collect();
        let listed = scene.operations.events(&selection, WHOLE).await.expect("events");
        assert_eq!(
            listed.iter().map(|event| event.id).collect::<Vec<_>>(),
            expected,
            "events by {selection:?}"
        );
        let narrowed = Selection {
            destination: selection.destination.clone().or(Some(BILLING.to_owned())),
            ..selection
        };
        let listed = scene.operations.deliveries(&narrowed, &[Delivered], WHOLE).await.expect("deliveries");
        assert_eq!(
            listed.iter().map(|row| row.id).collect::<Vec<_>>(),
            expected,
            "deliveries by {narrowed:?}"
        );
        let count = scene.operations.count_deliveries(&narrowed, &[Delivered]).await.expect("count");
        assert_eq!(count, expected.len() as u64, "count by {narrowed:?}");
    }
}

/// The beginning of a time range belongs to it, its end does not.
pub async fn a_time_range_is_half_open(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    let at = events[0].created_at;
    let found =
        async |selection: Selection| scene.operations.events(&selection, WHOLE).await.expect("events").len();
    assert_eq!(found(Selection { created_from: Some(at), ..Selection::default() }).await, 1);
    assert_eq!(found(Selection { created_to: Some(at), ..Selection::default() }).await, 0);
}

/// Deliveries are listed by state, newest first, in pages.
pub async fn deliveries_are_listed_by_state_in_pages(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3", "4", "4"]).await;
    scene
        .dispatch(vec![
            record(&events[0], BILLING, Dead),
            record(&events[1], BILLING, Dead),
            record(&events[2], BILLING, Delivered),
            record(&events[3], BILLING, Retry),
            record(&events[4], BILLING, Waiting),
        ])
        .await;
    let ids = async |states: &[DeliveryState], page: Page| -> Vec<OutboxId> {
        let rows =
            scene.operations.deliveries(&Selection::default(), states, page).await.expect("deliveries");
        rows.iter().map(|row| row.id).collect()
    };
    assert_eq!(ids(&[Dead], WHOLE).await, [events[1].id, events[0].id]);
    assert_eq!(ids(&[Dead], Page { before: None, limit: 1 }).await, [events[1].id]);
    assert_eq!(ids(&[Dead], Page { before: Some(events[1].id), limit: 1 }).await, [events[0].id]);
    assert_eq!(ids(&[Retry, Waiting], WHOLE).await, [events[4].id, events[3].id]);
    assert!(ids(&[Held], WHOLE).await.is_empty());
    let counted = scene
        .operations
        .count_deliveries(&Selection::default(), &[Dead, Delivered])
        .await
        .expect("count_deliveries");
    assert_eq!(counted, 3);
}

/// A story tells everything of an event; its payload and headers only when asked for.
pub async fn a_story_tells_everything_of_an_event(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let after = Timestamp::now() - 1.hour();
    let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).expect("JSON");
    let event = NewEvent {
        payload: raw("{ \"ü\": 1 }"),
        headers: Some(raw(r#"{"tenant":"acme"}"#)),
        deliver_after: Some(after),
        expires_at: Some(after + 10.hours()),
        ..order("1")
    };
    let events = scene.commit_events(&[event]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Retry), record(&events[0], AUDIT, Delivered)]).await;
    let story = scene.story(&events[0]).await;
    assert_eq!((story.event.id, story.event.event_id), (events[0].id, events[0].event_id));
    assert_eq!((story.event.aggregate_id.as_str(), story.event.aggregate_seq), ("1", 1));
    assert_eq!((story.shard, story.payload_bytes), (events[0].shard, 11));
    assert_eq!(story.payload.as_deref(), Some("{ \"ü\": 1 }"));
    assert!(story.headers.as_deref().is_some_and(|headers| headers.contains("acme")));
    assert!(story.deliver_after.is_some() && story.expires_at.is_some());
    assert_eq!(story.event.created_at, events[0].created_at);
    let destinations: Vec<&str> =
        story.deliveries.iter().map(|delivery| delivery.destination.as_str()).collect();
    assert_eq!(destinations, [AUDIT, BILLING], "by destination");
    assert!(story.deliveries.iter().all(|delivery| delivery.event_id == events[0].event_id
        && delivery.event_type == "order.confirmed"
        && delivery.aggregate_seq == 1));

    let brief = scene.operations.story(events[0].event_id, false).await.expect("story").expect("it exists");
    assert_eq!((brief.payload, brief.headers, brief.payload_bytes), (None, None, 11));
}

/// The story of an unknown event is `None`.
pub async fn the_story_of_an_unknown_event_is_none(harness: &dyn StoreHarness) {
    let operations = harness.operations().await;
    assert!(operations.story(Uuid::now_v7(), true).await.expect("story").is_none());
}

fn typed(aggregate_type: &str, aggregate_id: &str, event_type: &str) -> NewEvent {
    NewEvent {
        aggregate_type: aggregate_type.to_owned(),
        event_type: event_type.to_owned(),
        ..order(aggregate_id)
    }
}

/// Ids of `events`.
pub(super) fn ids(events: &[Arc<Event>]) -> Vec<OutboxId> {
    events.iter().map(|event| event.id).collect()
}
