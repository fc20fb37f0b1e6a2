//! Bringing parked lanes back.

use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use postbox_core::delivery::DeliveryState::{Dead, Delivered, Held, Retry, Waiting};
use postbox_core::delivery::{AttemptFailure, DeliveryRecord, DeliveryState};
use postbox_core::event::{NewEvent, Payload};
use postbox_core::store::DueRequest;

use super::harness::StoreHarness;
use super::scanning::assert_about;
use super::scene::{AUDIT, BILLING, HOUR, Scene, all_shards, failure, order, order_with_payload, record};

/// A head is due when its time has come, and not before.
pub async fn a_head_is_due_when_its_time_has_come(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Retry)]).await;
    assert!(scene.due(BILLING).await.is_empty(), "an hour is left");
    scene.harness.pass_time(HOUR / 2).await;
    assert!(scene.due(BILLING).await.is_empty(), "half an hour is left");
    scene.harness.pass_time(HOUR / 2 + Duration::from_secs(1)).await;
    assert_eq!(scene.due_ids(BILLING).await, [vec![events[0].id]]);
    assert_eq!(scene.due(BILLING).await[0].deliveries[0].due_in, Duration::ZERO);
    assert_eq!(scene.due_ids(BILLING).await, [vec![events[0].id]], "reading what is due takes nothing away");
}

/// A due lane comes with its unfinished deliveries in order, from the front, at most as many as asked for.
pub async fn a_due_lane_comes_with_what_waits_behind_its_head(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"; 5]).await;
    scene
        .dispatch(vec![
            record(&events[0], BILLING, Delivered),
            record(&events[1], BILLING, Dead),
            due_now(&events[2], BILLING),
            record(&events[3], BILLING, Waiting),
            record(&events[4], BILLING, Waiting),
        ])
        .await;
    let lanes = scene.due(BILLING).await;
    assert_eq!((lanes.len(), &*lanes[0].destination, lanes[0].lane_id), (1, BILLING, events[0].lane_id));
    let found: Vec<(i64, DeliveryState)> =
        lanes[0].deliveries.iter().map(|delivery| (delivery.event.id, delivery.state)).collect();
    assert_eq!(found, [(events[2].id, Retry), (events[3].id, Waiting), (events[4].id, Waiting)]);
    let request =
        DueRequest { shards: all_shards(), destinations: vec![(BILLING.into(), 10)], rows_per_lane: 2 };
    let bounded = scene.store.due(&request).await.expect("due");
    assert_eq!(
        bounded[0].deliveries.iter().map(|delivery| delivery.event.id).collect::<Vec<_>>(),
        [events[2].id, events[3].id]
    );
}

/// A held head is never due, and neither is what waits behind it.
pub async fn a_held_lane_is_not_due(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Held), record(&events[1], BILLING, Waiting)]).await;
    scene.harness.pass_time(24 * HOUR).await;
    assert!(scene.due(BILLING).await.is_empty());
}

/// Per destination the longest due lanes come first, at most as many as asked for.
pub async fn the_longest_due_lanes_come_first(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3", "4"]).await;
    let wait = [30, 10, 40, 20];
    scene
        .dispatch(
            events
                .iter()
                .zip(wait)
                .map(|(event, minutes)| DeliveryRecord {
                    retry_in: Some(Duration::from_secs(60 * minutes)),
                    ..record(event, BILLING, Retry)
                })
                .collect(),
        )
        .await;
    scene.harness.pass_time(HOUR).await;
    let request =
        DueRequest { shards: all_shards(), destinations: vec![(BILLING.into(), 3)], rows_per_lane: 10 };
    let lanes = scene.store.due(&request).await.expect("due");
    let heads: Vec<i64> = lanes.iter().map(|lane| lane.deliveries[0].event.id).collect();
    assert_eq!(heads, [events[1].id, events[3].id, events[0].id]);
}

/// Each destination has its own limit; one that was not named, and one named with 0, brings nothing.
pub async fn destinations_do_not_take_each_others_places(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3"]).await;
    let destinations = [BILLING, AUDIT, "mail", "chat"];
    scene
        .dispatch(
            events
                .iter()
                .flat_map(|event| destinations.map(|destination| due_now(event, destination)))
                .collect(),
        )
        .await;
    let request = DueRequest {
        shards: all_shards(),
        destinations: vec![(BILLING.into(), 2), (AUDIT.into(), 10), ("chat".into(), 0), ("nobody".into(), 5)],
        rows_per_lane: 10,
    };
    let lanes = scene.store.due(&request).await.expect("due");
    let count = |name: &str| lanes.iter().filter(|lane| &*lane.destination == name).count();
    assert_eq!((count(BILLING), count(AUDIT), lanes.len()), (2, 3, 5));
}

/// Lanes of shards that were not named are left alone.
pub async fn lanes_of_other_shards_are_left_alone(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2"]).await;
    assert_ne!(events[0].shard, events[1].shard, "new aggregates are spread over the shards in turn");
    scene.dispatch(events.iter().map(|event| due_now(event, BILLING)).collect()).await;
    let request = DueRequest {
        shards: vec![events[1].shard],
        destinations: vec![(BILLING.into(), 10)],
        rows_per_lane: 10,
    };
    let lanes = scene.store.due(&request).await.expect("due");
    assert_eq!(lanes.iter().map(|lane| lane.lane_id).collect::<Vec<_>>(), [events[1].lane_id]);
    let nowhere = DueRequest { shards: Vec::new(), ..request };
    assert!(scene.store.due(&nowhere).await.expect("due").is_empty());
}

/// A parked delivery comes back with its event, its attempts, its deadline and the doubt about its last attempt.
pub async fn a_parked_delivery_comes_back_whole(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let large = format!("\"{}\"", "x".repeat(100_000));
    let expiring = NewEvent { expires_at: Some(Timestamp::now() + 2.hours()), ..order("1") };
    let events = scene.commit_events(&[expiring, order_with_payload("1", &large)]).await;
    scene
        .dispatch(vec![
            DeliveryRecord {
                attempts: 3,
                failure: Some(AttemptFailure { class: "unknown", ..failure("no answer within 10 s") }),
                ..due_now(&events[0], BILLING)
            },
            record(&events[1], BILLING, Waiting),
        ])
        .await;
    let lanes = scene.due(BILLING).await;
    let [first, second] = lanes[0].deliveries.as_slice() else { panic!("two deliveries: {lanes:?}") };
    assert_eq!((first.attempts, first.maybe_delivered, first.replay), (3, true, false));
    assert_about(first.expires_in.expect("it expires"), 2 * HOUR);
    assert_eq!(first.event.event_id, events[0].event_id);
    assert_eq!(first.event.payload, events[0].payload);
    assert_eq!(first.event.aggregate_id, "1");
    assert_eq!((second.attempts, second.maybe_delivered, second.expires_in), (0, false, None));
    assert_eq!(second.event.payload, Payload::Deferred(large.len() as u64));
    assert_eq!(second.event.aggregate_seq, 2);
}

/// A parked delivery past its event's deadline still comes back, with nothing left.
pub async fn an_expired_delivery_comes_back_with_nothing_left(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let expiring = NewEvent { expires_at: Some(Timestamp::now() + 30.minutes()), ..order("1") };
    let events = scene.commit_events(&[expiring]).await;
    scene.dispatch(vec![due_now(&events[0], BILLING)]).await;
    scene.harness.pass_time(HOUR).await;
    assert_eq!(scene.due(BILLING).await[0].deliveries[0].expires_in, Some(Duration::ZERO));
}

/// A head whose next attempt is due at once.
pub(super) fn due_now(event: &postbox_core::event::Event, destination: &str) -> DeliveryRecord {
    DeliveryRecord { retry_in: Some(Duration::ZERO), ..record(event, destination, Retry) }
}
