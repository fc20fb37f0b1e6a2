//! Events that no route matched: once there is a route, a replay sends them.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use std::time::Duration;

use postbox_core::delivery::{DeliveryRecord, DeliveryState, NO_DESTINATION};
use postbox_core::lease::{Heartbeat, LeaseAnswer, Term};
use postbox_core::operations::{Operations, Selection};
use postbox_core::store::{Scan, ScanRequest, SettleBatch, ShardScan, Store};
use postbox_sqlite::SqliteStore;
use rusqlite::Connection;
use tempfile::TempDir;
use uuid::Uuid;

#[tokio::test]
async fn a_replayed_unrouted_event_is_routed_anew_by_the_relay_that_runs() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    let store = SqliteStore::open(&path).unwrap();
    store.migrate().await.unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', '7', 'order.confirmed', '{}')",
        )
        .unwrap();
    let relay = Uuid::now_v7();
    let before = beat(&store, relay, false).await;
    let scan = scan(&store, &before).await;
    let event = scan.rows[0].arrival.clone().unwrap().event;
    let unrouted = DeliveryRecord {
        id: event.id,
        lane_id: event.lane_id,
        shard: event.shard,
        destination: NO_DESTINATION.into(),
        state: DeliveryState::Unrouted,
        attempts: 0,
        uncounted: 0,
        withdrawn: false,
        retry_in: None,
        status: None,
        external_id: None,
        failure: None,
    };
    let term = before.iter().copied().find(|term| term.shard == event.shard).unwrap();
    let batch =
        SettleBatch { terms: vec![term], dispatched: vec![(event.shard, event.id)], records: vec![unrouted] };
    store.settle(&batch, relay).await.unwrap();
    assert_eq!(store.status().await.unwrap().unrouted.value, 1);

    let step = store.replay(&Selection::default(), &[DeliveryState::Unrouted], 0, 10).await.unwrap();
    assert_eq!((step.changed, step.done), (1, true));
    assert_eq!(store.status().await.unwrap().unrouted.value, 0);
    let after = beat(&store, relay, true).await;
    let renewed: Vec<&Term> = after.iter().filter(|term| !before.contains(term)).collect();
    assert_eq!(renewed.len(), 1, "the event's shard, and no other, is read from its beginning again");
    assert_eq!(renewed[0].shard, event.shard);
    let found = self::scan(&store, &after).await;
    assert_eq!(found.rows[0].id, event.id);
}

async fn beat(store: &SqliteStore, relay: Uuid, joined: bool) -> Vec<Term> {
    let heartbeat = Heartbeat::new(relay, "test:1", Duration::from_secs(60));
    match store.heartbeat(&heartbeat, joined).await.unwrap() {
        LeaseAnswer::Held { terms, .. } => terms,
        LeaseAnswer::Evicted => panic!("the relay was evicted"),
    }
}

/// Everything on the to-do list of the terms' shards.
async fn scan(store: &SqliteStore, terms: &[Term]) -> Scan {
    let shards = terms.iter().map(|term| ShardScan { shard: term.shard, floor: 0, cursor: 0 }).collect();
    store
        .scan(&ScanRequest { shards, rows_per_shard: 10, rows_per_lane: 10, saturated: Vec::new() })
        .await
        .unwrap()
}
