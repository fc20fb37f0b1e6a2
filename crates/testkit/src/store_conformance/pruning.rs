//! Removing what is done with, and nothing else.

use std::sync::Arc;

use postbox_core::delivery::DeliveryState::{
    Dead, Delivered, Discarded, Expired, Held, Retry, Unrouted, Waiting,
};
use postbox_core::delivery::NO_DESTINATION;
use postbox_core::event::Event;
use postbox_core::operations::{PrunePolicy, Selection};

use super::events::ids;
use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, DAY, Scene, WHOLE, record};

/// 30 days, and 90 for what is dead.
const POLICY: PrunePolicy =
    PrunePolicy { older_than: DAY.saturating_mul(30), dead_older_than: DAY.saturating_mul(90) };

/// Old events whose deliveries are all delivered, discarded or expired are removed with their deliveries.
pub async fn old_finished_events_are_removed(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3"]).await;
    scene
        .dispatch(vec![
            record(&events[0], BILLING, Delivered),
            record(&events[0], AUDIT, Expired),
            record(&events[1], BILLING, Discarded),
            record(&events[2], BILLING, Expired),
        ])
        .await;
    assert_eq!(scene.operations.count_prunable(&POLICY).await.expect("count"), 0, "they are young");
    scene.harness.pass_time(31 * DAY).await;
    let young = scene.commit_delivered(&["4"]).await;
    assert_eq!(scene.operations.count_prunable(&POLICY).await.expect("count"), 3);
    let step = scene.operations.prune(&POLICY, 0, 100).await.expect("prune");
    assert_eq!((step.changed, step.done), (3, true));
    assert_eq!(remaining(&scene).await, ids(&young));
    for event in &events {
        assert!(scene.operations.story(event.event_id, false).await.expect("story").is_none());
    }
    let left = scene
        .operations
        .count_deliveries(&Selection::default(), &[Delivered, Discarded, Expired])
        .await
        .expect("count");
    assert_eq!(left, 1, "deliveries go with their event");
}

/// An event with an unfinished delivery, or still on the to-do list, stays whatever its age.
pub async fn unfinished_events_stay_whatever_their_age(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "2", "3"]).await;
    scene
        .dispatch(vec![
            record(&events[0], BILLING, Retry),
            record(&events[1], BILLING, Waiting),
            record(&events[2], BILLING, Delivered),
            record(&events[2], AUDIT, Held),
        ])
        .await;
    scene.harness.pass_time(1_000 * DAY).await;
    assert_eq!(scene.operations.count_prunable(&POLICY).await.expect("count"), 0);
    let step = scene.operations.prune(&POLICY, 0, 100).await.expect("prune");
    assert_eq!((step.changed, step.done), (0, true));
    assert_eq!(remaining(&scene).await, ids(&events));
}

/// Dead and unrouted events have a retention of their own.
pub async fn dead_and_unrouted_events_are_kept_longer(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3"]).await;
    scene
        .dispatch(vec![
            record(&events[0], BILLING, Dead),
            record(&events[0], AUDIT, Delivered),
            record(&events[1], NO_DESTINATION, Unrouted),
            record(&events[2], BILLING, Delivered),
        ])
        .await;
    scene.harness.pass_time(31 * DAY).await;
    assert_eq!(scene.operations.prune(&POLICY, 0, 100).await.expect("prune").changed, 1);
    assert_eq!(remaining(&scene).await, ids(&events[..2]));
    scene.harness.pass_time(60 * DAY).await;
    assert_eq!(scene.operations.count_prunable(&POLICY).await.expect("count"), 2);
    assert_eq!(scene.operations.prune(&POLICY, 0, 100).await.expect("prune").changed, 2);
    assert!(remaining(&scene).await.is_empty());
}

/// Pruning goes on in bounded batches, past events that stay, and says when nothing is left.
pub async fn pruning_goes_on_in_bounded_batches(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let names: Vec<String> = (0..25).map(|n| format!("{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let events = scene.commit(&names).await;
    let state = |index: usize| if index < 5 { Dead } else { Delivered };
    scene
        .dispatch(
            events.iter().enumerate().map(|(index, event)| record(event, BILLING, state(index))).collect(),
        )
        .await;
    scene.harness.pass_time(31 * DAY).await;
    let (mut after, mut removed, mut steps) = (0, 0, 0);
    loop {
        let step = scene.operations.prune(&POLICY, after, 7).await.expect("prune");
        assert!(step.changed <= 7 && step.cursor >= after, "{step:?}");
        (after, removed, steps) = (step.cursor, removed + step.changed, steps + 1);
        if step.done {
            break;
        }
        assert!(steps < 20, "pruning does not come to its end");
    }
    assert_eq!(removed, 20);
    assert_eq!(remaining(&scene).await, ids(&events[..5]));
}

/// Pruning the past of an aggregate leaves its later events and their order alone.
pub async fn pruning_the_past_of_an_aggregate_leaves_its_future(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    scene.commit_delivered(&["1", "1"]).await;
    scene.harness.pass_time(31 * DAY).await;
    let later = scene.commit(&["1"]).await;
    scene.operations.prune(&POLICY, 0, 100).await.expect("prune");
    assert_eq!(remaining(&scene).await, ids(&later));
    assert_eq!(scene.pending_ids().await.into_iter().collect::<Vec<_>>(), ids(&later));
    assert_eq!(scene.commit(&["1"]).await[0].aggregate_seq, 4);
}

/// Ids of all events that exist, in order.
async fn remaining(scene: &Scene<'_>) -> Vec<i64> {
    let listed = scene.operations.events(&Selection::default(), WHOLE).await.expect("events");
    listed.iter().rev().map(|event| event.id).collect()
}

impl Scene<'_> {
    /// Commits one event per aggregate given and records it as delivered, under whatever lease is left.
    async fn commit_delivered(&self, aggregates: &[&str]) -> Vec<Arc<Event>> {
        let events = self.commit(aggregates).await;
        self.dispatch(events.iter().map(|event| record(event, BILLING, Delivered)).collect()).await;
        events
    }
}
