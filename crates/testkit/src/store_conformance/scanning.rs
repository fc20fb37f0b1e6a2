//! The to-do list: what a scan finds, and in which form.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::{Timestamp, ToSpan};
use postbox_core::delivery::DeliveryState::{Delivered, Held, Retry};
use postbox_core::event::{NewEvent, OutboxId, Payload, Shard};
use postbox_core::store::{INLINE_PAYLOAD_BYTES, Scan, ScanRequest, ShardScan};

use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, HOUR, Scene, order, order_with_payload, record, whole_scan};

/// A committed event is found with everything its producer wrote.
pub async fn a_committed_event_is_found_with_everything_its_producer_wrote(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let text = r#"{ "total": 12.50, "nul": "\u0000", "half": "\ud800", "face": "😀", "total": 1e2 }"#;
    let headers = r#"{"traceparent":"00-1-2-01","tenant":"acme"}"#;
    let event = NewEvent {
        headers: Some(serde_json::value::RawValue::from_string(headers.to_owned()).expect("JSON")),
        ..order_with_payload("it's \"42\"", text)
    };
    let before = Timestamp::now();
    scene.harness.commit(std::slice::from_ref(&event)).await.expect("commit");
    let pending = scene.pending().await;
    let [arrival] = pending.as_slice() else { panic!("one event is pending, found {pending:?}") };
    let found = &arrival.event;
    assert_eq!(Some(found.event_id), event.event_id);
    assert_eq!(
        (found.aggregate_type.as_str(), found.aggregate_id.as_str(), found.aggregate_seq),
        ("order", "it's \"42\"", 1)
    );
    assert_eq!(found.event_type, "order.confirmed");
    assert_eq!(found.payload, Payload::Inline(text.to_owned()), "the payload is kept byte for byte");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(found.headers.as_deref().expect("headers")).expect("JSON"),
        serde_json::from_str::<serde_json::Value>(headers).expect("JSON")
    );
    assert!(found.shard < postbox_core::event::SHARD_COUNT);
    let age = before.duration_since(found.created_at).abs();
    assert!(age < jiff::SignedDuration::from_secs(60), "created_at is {age} away from now");
    assert!(arrival.blocked.is_empty());
    assert_eq!((arrival.due_in, arrival.expires_in), (Duration::ZERO, None));
}

/// A rolled-back event is never found.
pub async fn a_rolled_back_event_is_never_found(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    scene.harness.roll_back(&[order("1"), order("2")]).await;
    let committed = scene.commit(&["1"]).await;
    assert_eq!(scene.pending_ids().await, BTreeSet::from([committed[0].id]));
    assert_eq!(committed[0].aggregate_seq, 1, "a rolled-back event leaves no gap");
}

/// An event that was dispatched is not found again.
pub async fn an_event_that_was_dispatched_is_not_found_again(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Delivered)]).await;
    assert_eq!(scene.pending_ids().await, BTreeSet::from([events[1].id]));
}

/// Rows come in order of id within each shard, every shard of the request is answered, and no other.
pub async fn rows_come_in_order_within_the_shards_that_were_asked_for(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let names: Vec<String> = (0..30).map(|n| format!("{}", n % 10)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let events = scene.commit(&names).await;
    let shards: BTreeSet<Shard> = events.iter().map(|event| event.shard).collect();
    let asked: Vec<Shard> = shards.iter().copied().take(3).collect();
    let request = ScanRequest {
        shards: asked.iter().map(|&shard| ShardScan { shard, floor: 0, cursor: 0 }).collect(),
        ..whole_scan()
    };
    let scan = scene.store.scan(&request).await.expect("scan");
    assert_eq!(
        scan.shards.iter().map(|shard| shard.shard).collect::<BTreeSet<_>>(),
        asked.iter().copied().collect()
    );
    let expected: BTreeMap<Shard, Vec<OutboxId>> = asked
        .iter()
        .map(|&shard| {
            (shard, events.iter().filter(|event| event.shard == shard).map(|event| event.id).collect())
        })
        .collect();
    assert_eq!(ids_by_shard(&scan), expected);
    for shard in &scan.shards {
        assert_eq!(Some(&shard.cursor), expected[&shard.shard].last());
        assert!(!shard.more);
    }
}

/// A shard without rows answers with the request's cursor.
pub async fn a_shard_without_rows_keeps_its_cursor(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let request = ScanRequest { shards: vec![ShardScan { shard: 5, floor: 3, cursor: 9 }], ..whole_scan() };
    let scan = scene.store.scan(&request).await.expect("scan");
    assert!(scan.rows.is_empty());
    assert_eq!((scan.shards[0].shard, scan.shards[0].cursor, scan.shards[0].more), (5, 9, false));
    assert!(scan.shards[0].floor >= 3);
}

/// Rows up to the cursor come by id alone; those beyond it with their event.
pub async fn rows_up_to_the_cursor_come_by_id_alone(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "1"]).await;
    let shard = ShardScan { shard: events[0].shard, floor: 0, cursor: events[1].id };
    let scan = scene.store.scan(&ScanRequest { shards: vec![shard], ..whole_scan() }).await.expect("scan");
    let found: Vec<(OutboxId, bool)> = scan.rows.iter().map(|row| (row.id, row.arrival.is_some())).collect();
    assert_eq!(found, [(events[0].id, false), (events[1].id, false), (events[2].id, true)]);
    assert!(scan.rows.iter().all(|row| row.lane_id == events[0].lane_id && row.shard == events[0].shard));
}

/// A scan starts above its floor.
pub async fn a_scan_starts_above_its_floor(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "1"]).await;
    let shard = ShardScan { shard: events[0].shard, floor: events[0].id, cursor: events[0].id };
    let scan = scene.store.scan(&ScanRequest { shards: vec![shard], ..whole_scan() }).await.expect("scan");
    assert_eq!(scan.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [events[1].id, events[2].id]);
    assert!(scan.shards[0].floor >= events[0].id, "a floor never sinks");
}

/// `rows_per_shard` bounds the rows beyond the cursor, and scans that go on from there see every row once.
pub async fn a_long_to_do_list_is_read_in_bounded_pieces(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"; 25]).await;
    let shard = events[0].shard;
    let (mut cursor, mut seen, mut scans) = (0, Vec::new(), 0);
    loop {
        let request = ScanRequest {
            shards: vec![ShardScan { shard, floor: 0, cursor }],
            rows_per_shard: 10,
            ..whole_scan()
        };
        let scan = scene.store.scan(&request).await.expect("scan");
        let beyond: Vec<OutboxId> = scan.rows.iter().map(|row| row.id).filter(|&id| id > cursor).collect();
        assert!(beyond.len() <= 10, "{} rows beyond the cursor", beyond.len());
        seen.extend(beyond);
        cursor = scan.shards[0].cursor;
        scans += 1;
        if !scan.shards[0].more {
            break;
        }
        assert!(scans < 10, "the scan does not come to its end");
    }
    assert_eq!(seen, events.iter().map(|event| event.id).collect::<Vec<_>>());
    assert!(scans >= 3);
}

/// Of one aggregate only the first `rows_per_lane` rows come with their event; other aggregates are not affected.
pub async fn a_busy_aggregate_brings_only_its_first_events_along(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let busy = scene.commit(&["busy"; 6]).await;
    let quiet = scene.commit(&["quiet"]).await;
    let scan = scene.store.scan(&ScanRequest { rows_per_lane: 2, ..whole_scan() }).await.expect("scan");
    let with_event: BTreeMap<OutboxId, bool> =
        scan.rows.iter().map(|row| (row.id, row.arrival.is_some())).collect();
    let expected: BTreeMap<OutboxId, bool> = busy
        .iter()
        .enumerate()
        .map(|(position, event)| (event.id, position < 2))
        .chain([(quiet[0].id, true)])
        .collect();
    assert_eq!(with_event, expected);
}

/// A saturated aggregate is left out up to the cursor and comes by id alone beyond it.
pub async fn a_saturated_aggregate_brings_no_event_along(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let busy = scene.commit(&["busy"; 3]).await;
    let shard = ShardScan { shard: busy[0].shard, floor: 0, cursor: busy[0].id };
    let request = ScanRequest { shards: vec![shard], saturated: vec![busy[0].lane_id], ..whole_scan() };
    let scan = scene.store.scan(&request).await.expect("scan");
    let found: Vec<(OutboxId, bool)> = scan.rows.iter().map(|row| (row.id, row.arrival.is_some())).collect();
    assert_eq!(found, [(busy[1].id, false), (busy[2].id, false)]);
    assert_eq!(scan.shards[0].cursor, busy[2].id);
}

/// An event that commits after one with a higher id is found by scans that go on from the returned floor and cursor.
pub async fn an_event_that_commits_late_is_found_below_the_cursor(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let late = order("late");
    let Some(open) = scene.harness.begin(std::slice::from_ref(&late)).await else { return };
    let others: Vec<String> = (0..40).map(|n| format!("other {n}")).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    scene.commit(&others).await;
    let mut position = whole_scan();
    // Long enough for a floor that trusts too much to pass the open transaction.
    for _ in 0..5 {
        let scan = scene.store.scan(&position).await.expect("scan");
        position = advanced(&scan);
    }
    open.commit().await;
    let scan = scene.store.scan(&position).await.expect("scan");
    let unknown: Vec<(Shard, OutboxId)> = scan.rows.iter().map(|row| (row.shard, row.id)).collect();
    let loaded = scene.store.load(&unknown).await.expect("load");
    assert!(
        loaded.iter().any(|arrival| Some(arrival.event.event_id) == late.event_id),
        "the late event is missing from {unknown:?}"
    );
}

/// A transaction that is rolled back late does not stop the floor for ever, so that scans stay short.
pub async fn the_floor_follows_once_every_transaction_has_ended(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    if let Some(open) = scene.harness.begin(&[order("late")]).await {
        open.roll_back().await;
    }
    let events = scene.commit(&["1"; 5]).await;
    let shard = events[0].shard;
    let mut position = whole_scan();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let scan = scene.store.scan(&position).await.expect("scan");
        position = advanced(&scan);
        let floor = position.shards.iter().find(|scan| scan.shard == shard).expect("answered").floor;
        if floor >= events[4].id {
            return;
        }
        assert!(Instant::now() < deadline, "the floor stays at {floor}, below {}", events[4].id);
    }
}

/// A payload beyond the limit is deferred with its size in bytes; one at the limit rides along.
pub async fn a_large_payload_is_deferred(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let limit = usize::try_from(INLINE_PAYLOAD_BYTES).expect("a small number");
    let at_limit = format!("\"{}\"", "x".repeat(limit - 2));
    // Counted in bytes: as characters it would still fit.
    let beyond = format!("\"{}\"", "ü".repeat(limit / 2));
    let events =
        scene.commit_events(&[order_with_payload("1", &at_limit), order_with_payload("2", &beyond)]).await;
    assert_eq!(events[0].payload, Payload::Inline(at_limit));
    assert_eq!(events[1].payload, Payload::Deferred(beyond.len() as u64));
}

/// What is put off says for how long, what expires says when, and what has expired is still reported.
pub async fn moments_of_the_producer_are_told_as_durations(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let now = Timestamp::now();
    let put_off =
        NewEvent { deliver_after: Some(now + 1.hour()), expires_at: Some(now + 2.hours()), ..order("1") };
    scene.harness.commit(&[put_off]).await.expect("commit");
    let arrival = scene.pending().await.remove(0);
    assert_about(arrival.due_in, HOUR);
    assert_about(arrival.expires_in.expect("it expires"), 2 * HOUR);
    scene.harness.pass_time(3 * HOUR).await;
    let arrival = scene.pending().await.remove(0);
    assert_eq!((arrival.due_in, arrival.expires_in), (Duration::ZERO, Some(Duration::ZERO)));
}

/// An arrival names the destinations on which its lane has a parked head, whether that waits for time or an operator.
pub async fn an_arrival_names_the_destinations_that_block_it(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let first = scene.commit(&["1", "2"]).await;
    scene
        .dispatch(vec![
            record(&first[0], BILLING, Retry),
            record(&first[0], AUDIT, Held),
            record(&first[0], "mail", Delivered),
            record(&first[1], BILLING, Delivered),
        ])
        .await;
    scene.harness.commit(&[order("1"), order("2")]).await.expect("commit");
    let blocked: Vec<BTreeSet<String>> = scene
        .pending()
        .await
        .iter()
        .map(|arrival| arrival.blocked.iter().map(|name| name.to_string()).collect())
        .collect();
    assert_eq!(blocked, [BTreeSet::from([AUDIT.to_owned(), BILLING.to_owned()]), BTreeSet::new()]);
}

/// The request that goes on where `scan` ended.
fn advanced(scan: &Scan) -> ScanRequest {
    let shards = scan
        .shards
        .iter()
        .map(|shard| ShardScan { shard: shard.shard, floor: shard.floor, cursor: shard.cursor })
        .collect();
    ScanRequest { shards, ..whole_scan() }
}

fn ids_by_shard(scan: &Scan) -> BTreeMap<Shard, Vec<OutboxId>> {
    let mut ids: BTreeMap<Shard, Vec<OutboxId>> = BTreeMap::new();
    for row in &scan.rows {
        ids.entry(row.shard).or_default().push(row.id);
    }
    ids
}

/// Within a minute of `expected`: the clocks of test and database and the time a test takes lie between.
pub(super) fn assert_about(actual: Duration, expected: Duration) {
    assert!(actual.abs_diff(expected) < Duration::from_secs(60), "{actual:?} is not about {expected:?}");
}
