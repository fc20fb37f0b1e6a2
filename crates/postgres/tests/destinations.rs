//! Destinations kept as data, changed by several at once.

#![cfg(feature = "store")]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use postbox_core::operations::Operations as _;
use postbox_core::store::Store as _;
use postbox_postgres::PostgresStore;
use postbox_testkit::postgres::{Database, PgCluster};
use tokio_postgres::{Client, NoTls};

async fn migrated() -> (Database<'static>, PostgresStore) {
    let database = PgCluster::shared().database();
    let store = PostgresStore::connect(&database.url(), None).unwrap();
    store.migrate().await.unwrap();
    (database, store)
}

async fn client(database: &Database<'_>) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Waits until somebody waits for a lock.
async fn somebody_waits(client: &Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
}

/// A version is never seen before everything up to it: the later writer waits until the earlier one has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_become_visible_in_order_and_complete() {
    let (database, store) = migrated().await;
    let (first, second, watcher) =
        (client(&database).await, client(&database).await, client(&database).await);
    let before = store.endpoints(-1).await.unwrap().unwrap().version;
    first
        .batch_execute(
            "BEGIN; INSERT INTO outbox_destination (name, settings) VALUES ('first', '{\"url\": \"x\"}')",
        )
        .await
        .unwrap();
    let later = tokio::spawn(async move {
        let insert = "INSERT INTO outbox_destination (name, settings) VALUES ('second', '{\"url\": \"x\"}')";
        second.batch_execute(insert).await.unwrap();
    });
    somebody_waits(&watcher).await;
    assert_eq!(store.endpoints(before).await.unwrap(), None, "neither has committed");
    first.batch_execute("COMMIT").await.unwrap();
    later.await.unwrap();
    let set = store.endpoints(before).await.unwrap().unwrap();
    let names: Vec<&str> = set.endpoints.iter().map(|endpoint| &*endpoint.name).collect();
    assert_eq!((names, set.version), (vec!["first", "second"], before + 2));
}

/// What a transaction took back was never news.
#[tokio::test]
async fn a_change_that_is_rolled_back_is_no_news() {
    let (database, store) = migrated().await;
    let before = store.endpoints(-1).await.unwrap().unwrap().version;
    database.sql("BEGIN; INSERT INTO outbox_destination (name) VALUES ('a'); ROLLBACK");
    assert_eq!(store.endpoints(before).await.unwrap(), None);
}

/// Two transactions that change the same endpoints in opposite order do not wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_queue_instead_of_meeting_in_a_deadlock() {
    let (database, store) = migrated().await;
    database.sql("INSERT INTO outbox_destination (name, settings) VALUES ('a', '{\"url\": \"x\"}'), ('b', '{\"url\": \"x\"}')");
    let (first, second, watcher) =
        (client(&database).await, client(&database).await, client(&database).await);
    let off = |name: &str| format!("UPDATE outbox_destination SET disabled_at = now() WHERE name = '{name}'");
    first.batch_execute(&format!("BEGIN; {}", off("a"))).await.unwrap();
    let (b_then_a, a) = (format!("BEGIN; {}; {}; COMMIT", off("b"), off("a")), off("b"));
    let later = tokio::spawn(async move { second.batch_execute(&b_then_a).await });
    somebody_waits(&watcher).await;
    first.batch_execute(&format!("{a}; COMMIT")).await.unwrap();
    later.await.unwrap().unwrap();
    let set = store.endpoints(-1).await.unwrap().unwrap();
    assert!(set.endpoints.iter().all(|endpoint| endpoint.disabled.is_some()));
}

/// Whoever may list destinations need not be able to read what signs in their name.
#[tokio::test]
async fn a_reader_of_destinations_sees_no_secret() {
    let (database, store) = migrated().await;
    store.add_endpoint("acme", "{\"url\": \"x\"}", Some("whsec_hunter2")).await.unwrap();
    let reader = format!("reader_{}", database.name());
    database.sql(&format!("CREATE ROLE {reader} LOGIN; GRANT SELECT ON outbox_destination TO {reader}"));
    let shown = database.sql(&format!("SET ROLE {reader}; SELECT row_to_json(d) FROM outbox_destination d"));
    assert!(shown.contains("acme") && !shown.contains("hunter2"), "{shown}");
    let client = client(&database).await;
    client.batch_execute(&format!("SET ROLE {reader}")).await.unwrap();
    let refused = client.query("SELECT * FROM outbox_destination_secret", &[]).await.unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("42501"));
}

/// Twice a second, by every relay: it must not matter how many destinations there are.
#[tokio::test]
async fn a_look_that_finds_nothing_new_reads_one_row() {
    let (database, store) = migrated().await;
    database.sql(
        "INSERT INTO outbox_destination (name, settings)
         SELECT 'endpoint-' || n, '{\"url\": \"https://acme.example/\"}' FROM generate_series(1, 10000) AS n;
         INSERT INTO outbox_destination_secret (destination, secret)
         SELECT name, 'whsec_AAAA' FROM outbox_destination",
    );
    let version = store.endpoints(-1).await.unwrap().unwrap().version;
    let statement =
        include_str!("../src/endpoints/read.sql").replace("@.", "").replace("$1", &version.to_string());
    for analyzed in [false, true] {
        if analyzed {
            database.sql("ANALYZE");
        }
        let plan = database.sql(&format!("EXPLAIN (ANALYZE, COSTS off, TIMING off) {statement}"));
        let scans = plan.lines().filter(|line| line.contains(" on outbox_destination"));
        let executed: Vec<&str> = scans.filter(|line| !line.contains("never executed")).collect();
        assert_eq!(executed.len(), 1, "{plan}");
        assert!(executed[0].contains("outbox_destination_version"), "{plan}");
    }
    assert_eq!(store.endpoints(version).await.unwrap(), None);
}
