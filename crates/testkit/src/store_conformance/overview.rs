//! The status: how late the outbox is, and why.

use jiff::{Timestamp, ToSpan};
use postbox_core::delivery::DeliveryState::{Dead, Delivered, Held, Retry, Unrouted, Waiting};
use postbox_core::delivery::{DeliveryRecord, NO_DESTINATION};
use postbox_core::event::NewEvent;
use postbox_core::operations::CappedCount;

use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, HOUR, Scene, failure, order, record};

/// Migrating again applies nothing, also when two do so at once.
pub async fn migrating_again_applies_nothing(harness: &dyn StoreHarness) {
    let (one, two) = (harness.operations().await, harness.operations().await);
    let (first, second) = futures_util::future::join(one.migrate(), two.migrate()).await;
    assert!(first.expect("migrate").is_empty() && second.expect("migrate").is_empty());
}

/// An empty outbox is not late and has nothing to show.
pub async fn an_empty_outbox_is_not_late(harness: &dyn StoreHarness) {
    let status = harness.operations().await.status().await.expect("status");
    assert_eq!((status.lag_seconds, status.oldest_event), (0.0, None));
    assert_eq!((status.pending, status.struggling, status.dead), (exactly(0), exactly(0), exactly(0)));
    assert_eq!((status.unrouted, status.in_flight), (exactly(0), 0));
    assert!(status.destinations.is_empty() && status.relays.is_empty());
}

/// The lag is the age of the oldest event that still has to be delivered, on the to-do list or parked.
pub async fn the_lag_is_the_age_of_the_oldest_unfinished_event(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let old = scene.commit(&["done", "dead", "parked"]).await;
    scene.harness.pass_time(HOUR).await;
    let young = scene.commit(&["pending"]).await;
    let lag = async || {
        let status = scene.operations.status().await.expect("status");
        (status.lag_seconds, status.oldest_event)
    };
    let (seconds, oldest) = lag().await;
    assert!((3_600.0..3_700.0).contains(&seconds), "{seconds}");
    assert_eq!(oldest, Some(old[0].event_id));

    scene
        .dispatch(vec![
            record(&old[0], BILLING, Delivered),
            record(&old[1], BILLING, Dead),
            record(&old[2], BILLING, Retry),
        ])
        .await;
    let (seconds, oldest) = lag().await;
    assert!((3_600.0..3_700.0).contains(&seconds), "{seconds}");
    assert_eq!(oldest, Some(old[2].event_id), "parked events count, dead and delivered ones do not");

    scene.settle(vec![DeliveryRecord { attempts: 2, ..record(&old[2], BILLING, Delivered) }]).await;
    let (seconds, oldest) = lag().await;
    assert!((0.0..100.0).contains(&seconds), "{seconds}");
    assert_eq!(oldest, Some(young[0].event_id));
    scene.dispatch(vec![record(&young[0], BILLING, Delivered)]).await;
    assert_eq!(lag().await, (0.0, None));
}

/// An event that its producer put off does not count as late before its time.
pub async fn an_event_that_was_put_off_is_not_late(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let put_off = NewEvent { deliver_after: Some(Timestamp::now() + 2.hours()), ..order("1") };
    scene.harness.commit(&[put_off]).await.expect("commit");
    scene.harness.pass_time(HOUR).await;
    let status = scene.operations.status().await.expect("status");
    assert_eq!((status.lag_seconds, status.oldest_event, status.pending), (0.0, None, exactly(1)));
    scene.harness.pass_time(2 * HOUR).await;
    assert!(scene.operations.status().await.expect("status").lag_seconds > 0.0);
}

/// The status counts what is pending, struggling, dead and unrouted, and says where.
pub async fn the_status_counts_exceptions_by_destination(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "2", "3", "4", "5", "6"]).await;
    scene
        .dispatch(vec![
            DeliveryRecord { failure: Some(failure("answered 500")), ..record(&events[0], BILLING, Retry) },
            record(&events[1], BILLING, Waiting),
            record(&events[2], BILLING, Held),
            record(&events[2], AUDIT, Dead),
            record(&events[3], BILLING, Dead),
            record(&events[3], AUDIT, Delivered),
            record(&events[4], NO_DESTINATION, Unrouted),
            record(&events[5], "mail", Delivered),
        ])
        .await;
    scene.harness.pass_time(HOUR).await;
    let status = scene.operations.status().await.expect("status");
    assert_eq!((status.pending, status.struggling), (exactly(1), exactly(3)));
    assert_eq!((status.dead, status.unrouted), (exactly(2), exactly(1)));
    let names: Vec<&str> = status.destinations.iter().map(|destination| destination.name.as_str()).collect();
    assert_eq!(names, [AUDIT, BILLING], "by name, only those with exceptions");
    let (audit, billing) = (&status.destinations[0], &status.destinations[1]);
    assert_eq!(
        (billing.retry, billing.waiting, billing.held, billing.dead),
        (exactly(1), exactly(1), exactly(1), exactly(1))
    );
    assert_eq!(
        (audit.retry, audit.waiting, audit.held, audit.dead),
        (exactly(0), exactly(0), exactly(0), exactly(1))
    );
    assert!(billing.oldest_seconds.is_some_and(|age| (3_600.0..3_700.0).contains(&age)));
    assert_eq!(audit.oldest_seconds, None, "a dead letter is finished");
    assert!(billing.last_error.is_some() && audit.last_error.is_some());
}

fn exactly(value: u64) -> CappedCount {
    CappedCount { value, capped: false }
}
