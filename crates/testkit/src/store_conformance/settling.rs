//! Recording outcomes: what is written, how often, and under which term.

use std::collections::BTreeSet;
use std::sync::Arc;

use postbox_core::delivery::DeliveryState::{Dead, Delivered, Discarded, Expired, Retry, Unrouted};
use postbox_core::delivery::{AttemptFailure, DeliveryRecord, NO_DESTINATION};
use postbox_core::lease::Term;
use postbox_core::operations::{HISTORY_LIMIT, Selection};
use postbox_core::store::{SettleBatch, SettleReport};
use uuid::Uuid;

use super::due::due_now;
use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, HOUR, LASTING, Scene, failure, held, join, record, renew};

/// A receipt says when, after how many attempts and with which answer an event was confirmed.
pub async fn a_receipt_says_what_was_confirmed(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene
        .dispatch(vec![DeliveryRecord {
            status: Some(202),
            external_id: Some("wamid.1".to_owned()),
            ..record(&events[0], BILLING, Delivered)
        }])
        .await;
    assert!(scene.pending_ids().await.is_empty());
    let receipt = scene.delivery(&events[0], BILLING).await;
    assert_eq!((receipt.state.as_str(), receipt.attempts, receipt.replays), ("delivered", 1, 0));
    assert_eq!((receipt.status, receipt.external_id.as_deref()), (Some(202), Some("wamid.1")));
    assert!(receipt.sent_at.is_some() && receipt.next_attempt_at.is_none());
    assert!(receipt.last_error.is_none() && receipt.history.is_empty());
}

/// An event with several destinations leaves the to-do list once, with a row for each.
pub async fn an_event_leaves_with_a_row_for_every_destination(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Delivered), record(&events[0], AUDIT, Retry)]).await;
    assert!(scene.pending_ids().await.is_empty());
    let story = scene.story(&events[0]).await;
    let rows: Vec<(&str, &str)> = story
        .deliveries
        .iter()
        .map(|delivery| (delivery.destination.as_str(), delivery.state.as_str()))
        .collect();
    assert_eq!(rows, [(AUDIT, "retry"), (BILLING, "delivered")]);
    assert_eq!(story.event.state, "retry", "the least finished state");
}

/// An event without a route, one past its deadline and one that was given up are recorded as such.
pub async fn events_that_are_not_delivered_are_recorded_as_what_they_are(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3"]).await;
    scene
        .dispatch(vec![
            record(&events[0], NO_DESTINATION, Unrouted),
            record(&events[1], BILLING, Expired),
            record(&events[2], BILLING, Dead),
        ])
        .await;
    for (event, destination, state) in [
        (&events[0], NO_DESTINATION, "unrouted"),
        (&events[1], BILLING, "expired"),
        (&events[2], BILLING, "dead"),
    ] {
        let delivery = scene.delivery(event, destination).await;
        assert_eq!(delivery.state, state);
        assert!(delivery.sent_at.is_none() && delivery.next_attempt_at.is_none(), "{state}");
    }
    assert!(scene.pending_ids().await.is_empty());
}

/// A failure is remembered with its attempt, class, reason, answer and duration, and its next attempt is planned.
pub async fn a_failure_is_remembered_with_what_the_operator_needs(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    let reason = "answered 503: it's \"busy\" 😀 \\ %s $1";
    scene
        .dispatch(vec![DeliveryRecord {
            failure: Some(AttemptFailure { answer: Some("<b>'no'</b>".to_owned()), ..failure(reason) }),
            ..record(&events[0], BILLING, Retry)
        }])
        .await;
    let delivery = scene.delivery(&events[0], BILLING).await;
    assert_eq!(
        (delivery.attempts, delivery.status, delivery.last_error.as_deref()),
        (1, Some(503), Some(reason))
    );
    let planned = delivery.next_attempt_at.expect("a next attempt is planned");
    let now = scene.operations.status().await.expect("status").now;
    let left = planned.duration_since(now).unsigned_abs();
    super::scanning::assert_about(left, HOUR);
    let [attempt] = delivery.history.as_slice() else { panic!("one attempt: {:?}", delivery.history) };
    assert_eq!((attempt.attempt, attempt.class.as_str(), attempt.status), (1, "transient", Some(503)));
    assert_eq!((attempt.reason.as_str(), attempt.answer.as_deref()), (reason, Some("<b>'no'</b>")));
    assert_eq!(attempt.took_ms, 12);
    assert!(attempt.at <= now);
}

/// A delivery that succeeds in the end keeps the history of its failures.
pub async fn a_late_success_keeps_the_history(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![due_now(&events[0], BILLING)]).await;
    scene.settle(vec![DeliveryRecord { attempts: 2, ..record(&events[0], BILLING, Delivered) }]).await;
    let delivery = scene.delivery(&events[0], BILLING).await;
    assert_eq!((delivery.state.as_str(), delivery.attempts, delivery.status), ("delivered", 2, Some(200)));
    assert!(delivery.sent_at.is_some() && delivery.next_attempt_at.is_none());
    assert_eq!(delivery.history.len(), 1);
}

/// The history keeps the last failures only, oldest first.
pub async fn the_history_is_bounded(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    let failed = |attempts: u32| DeliveryRecord {
        attempts,
        failure: Some(failure(&format!("failure {attempts}"))),
        ..due_now(&events[0], BILLING)
    };
    scene.dispatch(vec![failed(1)]).await;
    let last = u32::try_from(HISTORY_LIMIT + 5).expect("a small number");
    for attempts in 2..=last {
        scene.settle(vec![failed(attempts)]).await;
    }
    let history = scene.delivery(&events[0], BILLING).await.history;
    let numbers: Vec<u32> = history.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(numbers, (6..=last).collect::<Vec<_>>());
    assert_eq!(history[0].reason, "failure 6");
}

/// A batch that is repeated because its answer was lost changes nothing and adds nothing to a history.
pub async fn a_repeated_batch_changes_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "1"]).await;
    let batch = scene.dispatching(vec![
        record(&events[0], BILLING, Retry),
        record(&events[1], BILLING, Delivered),
        record(&events[2], BILLING, postbox_core::delivery::DeliveryState::Waiting),
    ]);
    scene.apply(&batch).await;
    let mut before = Vec::new();
    for event in &events {
        before.push(scene.delivery(event, BILLING).await);
    }
    for _ in 0..3 {
        scene.apply(&batch).await;
    }
    for (event, before) in events.iter().zip(before) {
        let after = scene.delivery(event, BILLING).await;
        assert_eq!(
            (after.state, after.attempts, after.replays),
            (before.state, before.attempts, before.replays)
        );
        assert_eq!(after.sent_at, before.sent_at, "the first confirmation counts");
        assert_eq!(after.history.len(), before.history.len());
    }
    scene.assert_heads().await;
}

/// An empty batch is no error.
pub async fn an_empty_batch_is_no_error(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    scene.apply(&SettleBatch::default()).await;
}

/// A batch of a thousand deliveries is recorded whole.
pub async fn a_large_batch_is_recorded_whole(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let names: Vec<String> = (0..1_000).map(|n| format!("{}", n % 100)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let events = scene.commit(&names).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Delivered)).collect()).await;
    assert!(scene.pending_ids().await.is_empty());
    let delivered =
        scene.operations.count_deliveries(&Selection::default(), &[Delivered]).await.expect("count");
    assert_eq!(delivered, 1_000);
}

/// Records of a term that is no longer current leave no trace; those of current terms beside them are stored.
pub async fn a_stale_term_is_refused_and_the_others_are_recorded(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2"]).await;
    let (lost, kept) = (Arc::clone(&events[0]), Arc::clone(&events[1]));
    assert_ne!(lost.shard, kept.shard, "new aggregates are spread over the shards in turn");
    let stale = scene.terms[&lost.shard];
    pass_on(&scene, stale).await;

    let batch = scene.dispatching(vec![record(&lost, BILLING, Delivered), record(&kept, BILLING, Delivered)]);
    let report = scene.store.settle(&batch, scene.relay).await.expect("settle");
    assert_eq!(report, SettleReport { refused: vec![stale] });
    assert_eq!(scene.pending_ids().await, BTreeSet::from([lost.id]));
    assert!(scene.story(&lost).await.deliveries.is_empty());
    assert_eq!(scene.delivery(&kept, BILLING).await.state, "delivered");
}

/// A relay that was evicted and whose shards have a new owner records nothing any more.
pub async fn an_evicted_relay_records_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.harness.pass_time(2 * LASTING).await;
    let other = Uuid::now_v7();
    held(join(&*scene.store, other).await);
    let batch = scene.dispatching(vec![record(&events[0], BILLING, Delivered)]);
    let report = scene.store.settle(&batch, scene.relay).await.expect("settle");
    assert_eq!(report.refused, batch.terms);
    assert_eq!(scene.pending_ids().await, BTreeSet::from([events[0].id]));
}

/// A late record does not bring back what an operator has finished meanwhile.
pub async fn a_record_does_not_bring_a_finished_delivery_back(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![due_now(&events[0], BILLING)]).await;
    scene.operations.discard(&super::scene::only(&events[0]), &[Retry], 0, 10).await.expect("discard");
    scene.settle(vec![DeliveryRecord { attempts: 2, ..record(&events[0], BILLING, Retry) }]).await;
    assert_eq!(scene.delivery(&events[0], BILLING).await.state, Discarded.as_str());
    scene.harness.pass_time(2 * HOUR).await;
    assert!(scene.due(BILLING).await.is_empty());
}

/// Two stores settle different events at the same time, and both are recorded.
pub async fn settles_of_two_stores_do_not_disturb_each_other(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let second = scene.harness.store().await;
    let names: Vec<String> = (0..200).map(|n| format!("{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let events = scene.commit(&names).await;
    let (left, right) = events.split_at(100);
    let batch = |events: &[Arc<postbox_core::event::Event>]| {
        scene.dispatching(events.iter().map(|event| record(event, BILLING, Delivered)).collect())
    };
    let (left, right) = (batch(left), batch(right));
    let (first, other) = futures_util::future::join(
        scene.store.settle(&left, scene.relay),
        second.settle(&right, scene.relay),
    )
    .await;
    assert_eq!(
        (first.expect("settle"), other.expect("settle")),
        (SettleReport::default(), SettleReport::default())
    );
    assert!(scene.pending_ids().await.is_empty());
}

/// Gives `term` back and has another relay take its shard.
async fn pass_on(scene: &Scene<'_>, term: Term) {
    scene.store.hand_back(scene.relay, &[term]).await.expect("hand_back");
    let other = Uuid::now_v7();
    let mut taken = held(join(&*scene.store, other).await);
    if taken.is_empty() {
        taken = held(renew(&*scene.store, other).await);
    }
    let [now] = taken.as_slice() else { panic!("one shard was free: {taken:?}") };
    assert!(now.shard == term.shard && now.epoch > term.epoch, "{now:?} after {term:?}");
}
