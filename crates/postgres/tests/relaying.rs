//! What relays rely on beyond the shared suite: late commits, fencing, leases that race, a database that goes away.

#![cfg(feature = "store")]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

mod shop;

use std::time::Duration;

use postbox_core::delivery::{DeliveryRecord, DeliveryState};
use postbox_core::event::{OutboxId, SHARD_COUNT};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term, fair_share};
use postbox_core::operations::Operations as _;
use postbox_core::store::{Scan, ScanRequest, SettleBatch, ShardScan, Store, StoreErrorKind};
use postbox_postgres::PostgresStore;
use postbox_testkit::postgres::{ClusterOptions, PgCluster};
use shop::Shop;
use uuid::Uuid;

const INSERT: &str = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)";

fn beat(relay: RelayId, ttl: Duration) -> Heartbeat {
    Heartbeat::new(relay, "test", ttl)
}

async fn join(store: &PostgresStore, relay: RelayId) -> Vec<Term> {
    match store.heartbeat(&beat(relay, Duration::from_secs(60)), false).await.unwrap() {
        LeaseAnswer::Held { terms, .. } => terms,
        LeaseAnswer::Evicted => panic!("evicted while joining"),
    }
}

/// Scans every shard again and again, as a relay does, from where the last scan ended.
struct Sweep(Vec<ShardScan>);

impl Sweep {
    fn new() -> Self {
        Self((0..SHARD_COUNT).map(|shard| ShardScan { shard, floor: 0, cursor: 0 }).collect())
    }

    async fn next(&mut self, store: &PostgresStore) -> Scan {
        let request = ScanRequest {
            shards: self.0.clone(),
            rows_per_shard: 1_000,
            rows_per_lane: 1_000,
            saturated: Vec::new(),
        };
        let scan = store.scan(&request).await.unwrap();
        self.0 = scan
            .shards
            .iter()
            .map(|scanned| ShardScan { shard: scanned.shard, floor: scanned.floor, cursor: scanned.cursor })
            .collect();
        scan
    }

    fn lowest_floor(&self) -> OutboxId {
        self.0.iter().map(|scan| scan.floor).min().unwrap()
    }
}

fn delivered(id: OutboxId, lane_id: i64) -> DeliveryRecord {
    DeliveryRecord {
        id,
        lane_id,
        shard: u16::try_from(lane_id % 64).unwrap(),
        destination: "billing".into(),
        state: DeliveryState::Delivered,
        attempts: 1,
        uncounted: 0,
        withdrawn: false,
        retry_in: None,
        status: Some(200),
        external_id: None,
        failure: None,
    }
}

/// The trap of a floor taken from the highest finished transaction: here a producer is the only one running, and
/// transactions that began after it come and go.
#[tokio::test]
async fn an_event_that_commits_after_many_later_ones_is_found_below_the_cursor() {
    let shop = Shop::open().await;
    let (late, quick) = (shop.client().await, shop.client().await);
    late.batch_execute(&format!("BEGIN; {INSERT} VALUES ('order', 'late', 'x', '{{}}')")).await.unwrap();
    let mut sweep = Sweep::new();
    for order in 0..20 {
        quick.batch_execute(&format!("{INSERT} VALUES ('order', '{order}', 'x', '{{}}')")).await.unwrap();
        sweep.next(&shop.store).await;
        // Marks are set no more often than this; every round shall try to move the floor.
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(sweep.lowest_floor(), 0, "an open transaction holds the floor below its id");
    late.batch_execute("COMMIT").await.unwrap();
    let found = sweep.next(&shop.store).await;
    let id = shop.number("SELECT id FROM outbox WHERE aggregate_id = 'late'");
    assert!(found.rows.iter().any(|row| row.id == id), "the late event was not found");
    while sweep.lowest_floor() < 21 {
        sweep.next(&shop.store).await;
    }
    assert!(sweep.next(&shop.store).await.rows.is_empty(), "below the floor nothing is read again");
}

#[tokio::test]
async fn the_prepared_half_of_a_two_phase_commit_holds_the_floor() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    client
        .batch_execute(&format!(
            "BEGIN; {INSERT} VALUES ('order', '1', 'x', '{{}}'); PREPARE TRANSACTION 'floor'"
        ))
        .await
        .unwrap();
    let mut sweep = Sweep::new();
    for _ in 0..5 {
        sweep.next(&shop.store).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(sweep.lowest_floor(), 0);
    client.batch_execute("COMMIT PREPARED 'floor'").await.unwrap();
    assert_eq!(sweep.next(&shop.store).await.rows.len(), 1);
}

/// A report, a migration, a forgotten session: it has written, so it pins every mark, but not to the outbox.
#[tokio::test]
async fn a_transaction_that_stays_open_and_wrote_no_event_does_not_hold_the_floor() {
    let shop = Shop::open().await;
    let (idle, producer) = (shop.client().await, shop.client().await);
    idle.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    let mut sweep = Sweep::new();
    for order in 1..=3 {
        producer.batch_execute(&format!("{INSERT} VALUES ('order', '{order}', 'x', '{{}}')")).await.unwrap();
        while sweep.lowest_floor() < order {
            sweep.next(&shop.store).await;
        }
    }
    // An event of a transaction that is open now is still found.
    producer.batch_execute(&format!("BEGIN; {INSERT} VALUES ('order', '4', 'x', '{{}}')")).await.unwrap();
    shop.client().await.batch_execute(&format!("{INSERT} VALUES ('order', '5', 'x', '{{}}')")).await.unwrap();
    for _ in 0..20 {
        sweep.next(&shop.store).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(sweep.lowest_floor(), 3);
    producer.batch_execute("COMMIT").await.unwrap();
    assert!(sweep.next(&shop.store).await.rows.iter().any(|row| row.id == 4));
}

#[tokio::test]
async fn an_idle_outbox_uses_up_no_transaction_ids() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    client.batch_execute(&format!("{INSERT} VALUES ('order', '1', 'x', '{{}}')")).await.unwrap();
    assert_eq!(
        shop.database.sql("SELECT mark IS NOT NULL FROM outbox_horizon(0, false)"),
        "t",
        "there is a new id"
    );
    assert_eq!(
        shop.database.sql("SELECT mark IS NOT NULL FROM outbox_horizon(1, false)"),
        "f",
        "there is none"
    );
}

#[tokio::test]
async fn a_settle_of_an_old_epoch_is_refused_and_leaves_no_trace() {
    let shop = Shop::open().await;
    shop.database
        .sql(&format!("{INSERT} SELECT 'order', n::text, 'x', '{{}}' FROM generate_series(1, 2) AS n"));
    let (old, new) = (Uuid::now_v7(), Uuid::now_v7());
    let terms = join(&shop.store, old).await;
    let mine: Vec<Term> = terms.into_iter().filter(|term| [1, 2].contains(&term.shard)).collect();
    // Shard 1 changes hands; shard 2 stays.
    shop.store.hand_back(old, &mine[..1]).await.unwrap();
    join(&shop.store, new).await;
    assert_eq!(shop.database.sql("SELECT owner FROM outbox_shard WHERE shard = 1"), new.to_string());

    let batch = SettleBatch {
        terms: mine.clone(),
        dispatched: vec![(1, 1), (2, 2)],
        records: vec![delivered(1, 1), delivered(2, 2)],
    };
    let report = shop.store.settle(&batch, old).await.unwrap();
    assert_eq!(report.refused, mine[..1]);
    assert_eq!(shop.numbers("SELECT id FROM outbox_pending"), [1]);
    assert_eq!(shop.numbers("SELECT outbox_id FROM outbox_delivery"), [2]);
}

/// A settle that waits for a hand-over finds its term gone when the wait is over.
#[tokio::test]
async fn a_settle_that_waits_for_a_hand_over_is_refused_afterwards() {
    let shop = Shop::open().await;
    shop.database.sql(&format!("{INSERT} VALUES ('order', '1', 'x', '{{}}')"));
    let relay = Uuid::now_v7();
    let term = join(&shop.store, relay).await.into_iter().find(|term| term.shard == 1).unwrap();
    let taker = shop.client().await;
    taker
        .batch_execute(
            "BEGIN; UPDATE outbox_shard SET owner = gen_random_uuid(), epoch = epoch + 1 WHERE shard = 1",
        )
        .await
        .unwrap();
    let batch = SettleBatch { terms: vec![term], dispatched: vec![(1, 1)], records: vec![delivered(1, 1)] };
    let commit_once_it_waits = async {
        while shop.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") == 0 {
            tokio::task::yield_now().await;
        }
        taker.batch_execute("COMMIT").await.unwrap();
    };
    let (report, ()) = tokio::join!(shop.store.settle(&batch, relay), commit_once_it_waits);
    assert_eq!(report.unwrap().refused, [term]);
    assert_eq!(shop.number("SELECT count(*) FROM outbox_delivery"), 0);
    assert_eq!(shop.numbers("SELECT id FROM outbox_pending"), [1]);
}

/// Renewals of a relay whose lease has just run out race with others that evict it: whoever wins, a relay that was told
/// it holds a shard is its owner, and no term has two owners.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_renewal_and_an_eviction_only_one_wins() {
    let shop = Shop::open().await;
    let open = || PostgresStore::connect(&shop.database.url(), None).unwrap();
    let (one, two) = (open(), open());
    let (mut renewed, mut evicted) = (0, 0);
    for _ in 0..60 {
        let (slow, rival) = (Uuid::now_v7(), Uuid::now_v7());
        join(&one, slow).await;
        shop.database.sql("UPDATE outbox_relay SET leased_until = clock_timestamp() - interval '1 ms'");
        let long = Duration::from_secs(60);
        let (renewing, taking) = (beat(slow, long), beat(rival, long));
        let (renewal, taken) = tokio::join!(one.heartbeat(&renewing, true), two.heartbeat(&taking, false));
        let LeaseAnswer::Held { terms: taken, .. } = taken.unwrap() else { panic!("the rival was evicted") };
        match renewal.unwrap() {
            LeaseAnswer::Evicted => evicted += 1,
            LeaseAnswer::Held { terms, .. } => {
                renewed += 1;
                assert_eq!(terms.len(), usize::from(SHARD_COUNT), "a renewal keeps what it had");
                assert!(taken.is_empty(), "both hold a shard");
            }
        }
        one.leave(slow).await.unwrap();
        two.leave(rival).await.unwrap();
    }
    assert_eq!(renewed + evicted, 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relays_that_join_at_once_share_the_shards_and_nobody_exceeds_the_fair_share() {
    let shop = Shop::open().await;
    let relays: Vec<RelayId> = (0..5).map(|_| Uuid::now_v7()).collect();
    let stores: Vec<PostgresStore> =
        relays.iter().map(|_| PostgresStore::connect(&shop.database.url(), None).unwrap()).collect();
    let joins = stores.iter().zip(&relays).map(|(store, &relay)| join(store, relay));
    futures_util::future::join_all(joins).await;
    let share = fair_share(5);
    // Those that came first took more than their share and give the rest back, as a relay does.
    for _ in 0..2 {
        for (store, &relay) in stores.iter().zip(&relays) {
            let answer = store.heartbeat(&beat(relay, Duration::from_secs(60)), true).await.unwrap();
            let LeaseAnswer::Held { terms, live } = answer else { panic!("evicted") };
            assert_eq!(live, 5);
            store.hand_back(relay, terms.get(share..).unwrap_or_default()).await.unwrap();
        }
    }
    for (store, &relay) in stores.iter().zip(&relays) {
        store.heartbeat(&beat(relay, Duration::from_secs(60)), true).await.unwrap();
    }
    let owned = shop.numbers("SELECT count(*) FROM outbox_shard WHERE owner IS NOT NULL GROUP BY owner");
    assert_eq!(owned.iter().sum::<i64>(), i64::from(SHARD_COUNT));
    assert!(owned.iter().all(|&shards| usize::try_from(shards).unwrap() <= share), "{owned:?}");
}

#[tokio::test]
async fn the_store_comes_back_when_the_database_does() {
    let cluster = PgCluster::start_new(&ClusterOptions::new());
    let database = cluster.database();
    let store = PostgresStore::connect(&database.url(), None).unwrap();
    store.migrate().await.unwrap();
    let mut sweep = Sweep::new();
    sweep.next(&store).await;
    let relay = Uuid::now_v7();
    join(&store, relay).await;
    cluster.stop();
    let request =
        ScanRequest { shards: sweep.0.clone(), rows_per_shard: 1, rows_per_lane: 1, saturated: Vec::new() };
    for _ in 0..3 {
        assert_eq!(store.scan(&request).await.unwrap_err().kind, StoreErrorKind::Unavailable);
        assert_eq!(
            store.heartbeat(&beat(relay, Duration::from_secs(9)), true).await.unwrap_err().kind,
            StoreErrorKind::Unavailable
        );
    }
    cluster.start();
    sweep.next(&store).await;
    join(&store, relay).await;
    assert_eq!(store.status().await.unwrap().relays.len(), 1);
}

#[tokio::test]
async fn an_event_no_route_matched_is_routed_anew_when_it_is_replayed() {
    let shop = Shop::open().await;
    shop.database.sql(&format!("{INSERT} VALUES ('order', '1', 'x', '{{}}')"));
    let relay = Uuid::now_v7();
    let terms = join(&shop.store, relay).await;
    let term = terms.into_iter().find(|term| term.shard == 1).unwrap();
    let unrouted = DeliveryRecord {
        destination: "".into(),
        state: DeliveryState::Unrouted,
        attempts: 0,
        ..delivered(1, 1)
    };
    let batch = SettleBatch { terms: vec![term], dispatched: vec![(1, 1)], records: vec![unrouted] };
    shop.store.settle(&batch, relay).await.unwrap();
    assert_eq!(shop.number("SELECT count(*) FROM outbox_pending"), 0);

    let step = shop.store.replay(&Default::default(), &[DeliveryState::Unrouted], 0, 10).await.unwrap();
    assert_eq!((step.changed, step.done), (1, true));
    assert_eq!(shop.numbers("SELECT id FROM outbox_pending"), [1]);
    let again = shop.store.heartbeat(&beat(relay, Duration::from_secs(60)), true).await.unwrap();
    let LeaseAnswer::Held { terms, .. } = again else { panic!("evicted") };
    let renewed = terms.iter().find(|renewed| renewed.shard == 1).unwrap();
    assert!(renewed.epoch > term.epoch, "a new term, which begins below every floor");
}
