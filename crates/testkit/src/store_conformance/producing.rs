//! What a producer may rely on, whatever the database.

use std::collections::BTreeSet;
use std::time::Duration;

use postbox_core::delivery::DeliveryState::Delivered;
use postbox_core::event::NewEvent;
use postbox_core::operations::PrunePolicy;

use super::harness::StoreHarness;
use super::scene::{BILLING, Scene, order, record};

/// Sequences are gapless from 1 per aggregate, and the order of ids is the order of sequences.
pub async fn sequences_are_gapless_per_aggregate(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    scene.commit(&["1", "2", "1"]).await;
    scene.harness.roll_back(&[order("1"), order("2")]).await;
    scene.commit(&["2", "1"]).await;
    for (aggregate, last) in [("1", 3), ("2", 2)] {
        let sequences: Vec<i64> = scene
            .pending()
            .await
            .iter()
            .filter(|arrival| arrival.event.aggregate_id == aggregate)
            .map(|arrival| arrival.event.aggregate_seq)
            .collect();
        assert_eq!(sequences, (1..=last).collect::<Vec<_>>(), "aggregate {aggregate}");
    }
}

/// Aggregates of one id and different types are different lanes.
pub async fn the_type_is_part_of_an_aggregate(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let invoice = NewEvent { aggregate_type: "invoice".to_owned(), ..order("1") };
    let events = scene.commit_events(&[order("1"), invoice]).await;
    assert_eq!((events[0].aggregate_seq, events[1].aggregate_seq), (1, 1));
    assert_ne!(events[0].lane_id, events[1].lane_id);
}

/// An aggregate keeps its lane and its shard.
pub async fn an_aggregate_keeps_its_lane_and_shard(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let first = scene.commit(&["1"]).await;
    let second = scene.commit(&["2", "1"]).await;
    assert_eq!((first[0].lane_id, first[0].shard), (second[1].lane_id, second[1].shard));
    assert_ne!(first[0].lane_id, second[0].lane_id);
}

/// A repeated `event_id` inserts nothing: no second event, no gap, nothing to do.
pub async fn a_repeated_event_id_inserts_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let event = order("1");
    scene.commit_events(std::slice::from_ref(&event)).await;
    let again = NewEvent { aggregate_id: "2".to_owned(), ..event.clone() };
    scene.harness.commit(&[event, again]).await.expect("a repetition is no error");
    let next = scene.commit(&["1", "2"]).await;
    assert_eq!((next[0].aggregate_seq, next[1].aggregate_seq), (2, 1));
    assert_eq!(scene.pending().await.len(), 3);
}

/// The sequence that follows may be given; any other is an error that names the aggregate and the expected number.
pub async fn a_given_sequence_must_be_the_next_one(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let numbered = |seq| NewEvent { aggregate_seq: Some(seq), ..order("order-77") };
    scene.commit_events(&[numbered(1), numbered(2)]).await;
    for wrong in [2, 4, 0] {
        let message =
            scene.harness.commit(&[numbered(wrong)]).await.expect_err("the sequence does not follow");
        assert!(message.contains("order-77") && message.contains('3'), "{wrong} gave: {message}");
    }
    assert_eq!(scene.commit_events(&[numbered(3)]).await[0].aggregate_seq, 3);
}

/// An id that is too long, a type with spaces and headers that are no object are refused with the column's name.
pub async fn what_no_event_may_be_is_refused(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let message = scene.harness.commit(&[order(&"x".repeat(10_000))]).await.expect_err("the id is too long");
    assert!(message.contains("aggregate_id"), "{message}");
    let headers = serde_json::value::RawValue::from_string("[1]".to_owned()).expect("JSON");
    let message = scene
        .harness
        .commit(&[NewEvent { headers: Some(headers), ..order("1") }])
        .await
        .expect_err("headers are an object");
    assert!(message.contains("headers"), "{message}");
    let spaced = NewEvent { event_type: "order was confirmed".to_owned(), ..order("1") };
    let message = scene.harness.commit(&[spaced]).await.expect_err("the event type has spaces");
    assert!(message.contains("event_type"), "{message}");
    assert!(scene.pending().await.is_empty());
}

/// After everything an aggregate had was pruned, its sequence goes on.
pub async fn a_pruned_aggregate_goes_on_with_its_sequence(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "1"]).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Delivered)).collect()).await;
    scene.harness.pass_time(Duration::from_secs(10)).await;
    let everything =
        PrunePolicy { older_than: Duration::from_secs(1), dead_older_than: Duration::from_secs(1) };
    let step = scene.operations.prune(&everything, 0, 100).await.expect("prune");
    assert_eq!(step.changed, 3);
    let next = scene.commit(&["1"]).await;
    assert_eq!(next[0].aggregate_seq, 4);
    assert_eq!(next[0].lane_id, events[0].lane_id);
    assert!(next[0].id > events[2].id);
    assert_eq!(scene.pending_ids().await, BTreeSet::from([next[0].id]));
}
