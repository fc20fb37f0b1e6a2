//! Reading events by id, by aggregate, and their payloads.

use postbox_core::delivery::DeliveryState::{Delivered, Retry};
use postbox_core::event::{OutboxId, Payload};
use postbox_core::store::RefillRequest;

use super::harness::StoreHarness;
use super::scene::{BILLING, Scene, order, order_with_payload, record};

/// Loading by id gives the events in order of id and leaves out what is no longer, or never was, on the to-do list.
pub async fn loading_leaves_out_what_is_not_on_the_to_do_list(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3", "1"]).await;
    scene.dispatch(vec![record(&events[1], BILLING, Delivered)]).await;
    let mut asked: Vec<_> = events.iter().rev().map(|event| (event.shard, event.id)).collect();
    asked.push((events[0].shard, events[3].id + 1_000_000));
    let loaded = scene.store.load(&asked).await.expect("load");
    let ids: Vec<OutboxId> = loaded.iter().map(|arrival| arrival.event.id).collect();
    assert_eq!(ids, [events[0].id, events[2].id, events[3].id]);
    assert_eq!(loaded[2].event.aggregate_seq, 2);
    assert_eq!(loaded[0].event.payload, events[0].payload);
}

/// Loading nothing is no error.
pub async fn loading_nothing_gives_nothing(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    scene.commit(&["1"]).await;
    assert!(scene.store.load(&[]).await.expect("load").is_empty());
}

/// Loaded arrivals say which destinations block them, as scanned ones do.
pub async fn loaded_arrivals_say_what_blocks_them(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Retry)]).await;
    let loaded = scene.store.load(&[(events[1].shard, events[1].id)]).await.expect("load");
    assert_eq!(loaded[0].blocked.iter().map(|name| &**name).collect::<Vec<_>>(), [BILLING]);
}

/// A refill continues one aggregate: its pending events above a sequence, in order, at most as many as asked for.
pub async fn a_refill_continues_one_aggregate(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["busy", "busy", "other", "busy", "busy", "busy", "other"]).await;
    scene.dispatch(vec![record(&events[3], BILLING, Delivered)]).await;
    let request = RefillRequest {
        lane_id: events[0].lane_id,
        shard: events[0].shard,
        aggregate_type: "order".to_owned(),
        aggregate_id: "busy".to_owned(),
        after_seq: 1,
        limit: 2,
    };
    let sequences = |arrivals: &[postbox_core::store::Arrival]| -> Vec<i64> {
        arrivals.iter().map(|arrival| arrival.event.aggregate_seq).collect()
    };
    let arrivals = scene.store.refill(&request).await.expect("refill");
    assert_eq!(sequences(&arrivals), [2, 4], "3 was dispatched");
    assert!(arrivals.iter().all(|arrival| arrival.event.aggregate_id == "busy"));
    let rest =
        scene.store.refill(&RefillRequest { after_seq: 4, limit: 10, ..request }).await.expect("refill");
    assert_eq!(sequences(&rest), [5]);
}

/// A payload is read exactly as it was written, also after its event was dispatched.
pub async fn a_payload_is_read_exactly_as_it_was_written(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let large = format!(
        "{{ \"a\" : \"\\u0000 \\udc00 😀\",\n \"b\":[1,  1.0e5], \"text\": \"{}\"}}",
        "ü".repeat(5_000_000 / 2)
    );
    let events = scene.commit_events(&[order_with_payload("1", &large), order("2")]).await;
    assert_eq!(events[0].payload, Payload::Deferred(large.len() as u64));
    let read = scene.store.payload(events[0].id).await.expect("payload");
    // Not assert_eq: nobody wants to read 5 MB twice.
    assert!(read.as_deref() == Some(large.as_str()), "the payload came back changed");
    scene.dispatch(vec![record(&events[0], BILLING, Retry)]).await;
    assert!(scene.store.payload(events[0].id).await.expect("payload") == Some(large));
}

/// The payload of an event that does not exist is `None`.
pub async fn the_payload_of_an_unknown_event_is_none(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    assert_eq!(scene.store.payload(4_711).await.expect("payload"), None);
}

/// The schema that a migration made passes the check.
pub async fn a_migrated_schema_passes_its_check(harness: &dyn StoreHarness) {
    harness.store().await.check_schema().await.expect("the tables are there");
}
