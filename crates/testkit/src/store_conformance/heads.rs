//! A parked lane has its lowest unfinished delivery as its head, whatever was recorded in which order.

use jiff::{Timestamp, ToSpan};
use postbox_core::delivery::DeliveryRecord;
use postbox_core::delivery::DeliveryState::{Dead, Delivered, Expired, Held, Retry, Waiting};
use postbox_core::event::NewEvent;

use super::due::due_now;
use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, HOUR, Scene, order, record};

/// What is parked as waiting with nothing ahead of it becomes the head, due at once.
pub async fn a_waiting_delivery_with_nothing_ahead_becomes_the_head(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Waiting), record(&events[1], BILLING, Waiting)]).await;
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "waiting"]);
    assert_eq!(scene.due_ids(BILLING).await, [vec![events[0].id, events[1].id]]);
    assert_eq!(scene.delivery(&events[0], BILLING).await.attempts, 0, "waiting costs no attempt");
}

/// What is parked behind a head waits, also when it comes in a later settle.
pub async fn later_events_wait_behind_the_head(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "1", "2"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Retry), record(&events[1], BILLING, Waiting)]).await;
    scene.dispatch(vec![record(&events[2], BILLING, Waiting)]).await;
    scene.dispatch(vec![record(&events[3], BILLING, Waiting)]).await;
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "waiting", "waiting", "retry"]);
    scene.assert_heads().await;
}

/// When the head is finished, however that happened, the next one takes its place, due at once.
pub async fn a_finished_head_makes_way_for_the_next(harness: &dyn StoreHarness) {
    for end in [Delivered, Dead, Expired] {
        let scene = Scene::new(harness).await;
        let lane = format!("lane that ends {end:?}");
        let events = scene.commit(&[&lane, &lane, &lane]).await;
        scene
            .dispatch(vec![
                record(&events[0], BILLING, Retry),
                record(&events[1], BILLING, Waiting),
                record(&events[2], BILLING, Waiting),
            ])
            .await;
        scene.settle(vec![DeliveryRecord { attempts: 2, ..record(&events[0], BILLING, end) }]).await;
        assert_eq!(scene.states(&events, BILLING).await, [end.as_str(), "retry", "waiting"]);
        let due = scene.due_ids(BILLING).await;
        assert!(due.contains(&vec![events[1].id, events[2].id]), "{due:?}");
        scene.store.leave(scene.relay).await.expect("leave");
    }
}

/// A new head whose producer put it off is not due before its own time.
pub async fn a_new_head_that_was_put_off_is_due_at_its_own_time(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let put_off = NewEvent { deliver_after: Some(Timestamp::now() + 1.hour()), ..order("1") };
    harness.commit(&[order("1"), put_off]).await.expect("commit");
    let events: Vec<_> = scene.pending().await.into_iter().map(|arrival| arrival.event).collect();
    scene.dispatch(vec![record(&events[0], BILLING, Retry), record(&events[1], BILLING, Waiting)]).await;
    scene.settle(vec![DeliveryRecord { attempts: 2, ..record(&events[0], BILLING, Delivered) }]).await;
    assert_eq!(scene.states(&events, BILLING).await, ["delivered", "retry"]);
    assert!(scene.due_ids(BILLING).await.is_empty());
    harness.pass_time(2 * HOUR).await;
    assert_eq!(scene.due_ids(BILLING).await, [vec![events[1].id]]);
}

/// A settle that finishes several deliveries of a lane promotes the first that is left.
pub async fn several_outcomes_of_a_lane_in_one_settle_promote_the_first_that_is_left(
    harness: &dyn StoreHarness,
) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"; 4]).await;
    scene
        .dispatch(
            [due_now(&events[0], BILLING)]
                .into_iter()
                .chain(events[1..].iter().map(|event| record(event, BILLING, Waiting)))
                .collect(),
        )
        .await;
    scene
        .settle(vec![
            DeliveryRecord { attempts: 2, ..record(&events[0], BILLING, Delivered) },
            record(&events[1], BILLING, Delivered),
            record(&events[2], BILLING, Retry),
        ])
        .await;
    assert_eq!(scene.states(&events, BILLING).await, ["delivered", "delivered", "retry", "waiting"]);
    assert!(scene.due_ids(BILLING).await.is_empty(), "the new head failed just now");
}

/// A head that is held keeps its lane waiting.
pub async fn a_held_head_keeps_its_lane_waiting(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Retry), record(&events[1], BILLING, Waiting)]).await;
    scene.settle(vec![DeliveryRecord { attempts: 2, ..record(&events[0], BILLING, Held) }]).await;
    assert_eq!(scene.states(&events, BILLING).await, ["held", "waiting"]);
    scene.harness.pass_time(24 * HOUR).await;
    assert!(scene.due(BILLING).await.is_empty());
}

/// A lane of one destination knows nothing of the same aggregate's lane on another.
pub async fn lanes_of_different_destinations_have_heads_of_their_own(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene
        .dispatch(vec![
            due_now(&events[0], BILLING),
            record(&events[0], AUDIT, Delivered),
            record(&events[1], BILLING, Waiting),
            record(&events[1], AUDIT, Waiting),
        ])
        .await;
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "waiting"]);
    assert_eq!(scene.states(&events, AUDIT).await, ["delivered", "retry"]);
    assert_eq!(scene.due_ids(AUDIT).await, [vec![events[1].id]]);
}
