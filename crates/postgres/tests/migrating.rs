//! Migrating: once, by whoever comes first, and never backwards.

#![cfg(feature = "store")]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use postbox_core::operations::Operations as _;
use postbox_core::store::{Store as _, StoreErrorKind};
use postbox_postgres::PostgresStore;
use postbox_postgres::schema::{MIGRATIONS, VERSION, migration_sql};
use postbox_testkit::postgres::PgCluster;

fn open(url: &str, schema: Option<&str>) -> PostgresStore {
    PostgresStore::connect(url, schema).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_migrations_at_once_one_does_the_work() {
    for schema in [None, Some("shop")] {
        let database = PgCluster::shared().database();
        let (one, two) = (open(&database.url(), schema), open(&database.url(), schema));
        let (first, second) = tokio::join!(one.migrate(), two.migrate());
        let (first, second) = (first.unwrap(), second.unwrap());
        let all: Vec<u32> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!([first.len(), second.len()].iter().sum::<usize>(), all.len(), "{first:?} {second:?}");
        assert!(first == all || second == all, "one transaction applies all: {first:?} {second:?}");
        one.check_schema().await.unwrap();
    }
}

#[tokio::test]
async fn a_database_without_tables_says_what_to_run() {
    let database = PgCluster::shared().database();
    let error = open(&database.url(), None).check_schema().await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::SchemaMissing);
    assert!(error.message.contains("postbox migrate"), "{error}");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let database = PgCluster::shared().database();
    let store = open(&database.url(), None);
    store.migrate().await.unwrap();
    database.sql("INSERT INTO outbox_schema (version, name) VALUES (1000, 'tomorrow')");
    for error in [store.migrate().await.unwrap_err(), store.check_schema().await.unwrap_err()] {
        assert_eq!(error.kind, StoreErrorKind::SchemaNewer);
        assert!(error.message.contains("1000") && error.message.contains(&VERSION.to_string()), "{error}");
    }
}

#[tokio::test]
async fn the_printed_script_creates_the_same_tables() {
    for schema in [None, Some("it's \"quoted\"")] {
        let database = PgCluster::shared().database();
        database.sql(&migration_sql(schema));
        let store = open(&database.url(), schema);
        store.check_schema().await.unwrap();
        assert!(store.migrate().await.unwrap().is_empty());
        assert_eq!(store.status().await.unwrap().pending.value, 0);
    }
}

#[tokio::test]
async fn a_failed_migration_leaves_nothing_behind() {
    let database = PgCluster::shared().database();
    database.sql("CREATE TABLE outbox_delivery (in_the_way int)");
    let store = open(&database.url(), None);
    store.migrate().await.unwrap_err();
    assert_eq!(database.sql("SELECT to_regclass('outbox') IS NULL"), "t");
    database.sql("DROP TABLE outbox_delivery");
    assert_eq!(store.migrate().await.unwrap().len(), MIGRATIONS.len());
}

#[tokio::test]
async fn a_role_that_begins_with_another_isolation_level_is_told_so() {
    let database = PgCluster::shared().database();
    open(&database.url(), None).migrate().await.unwrap();
    let url = format!("{}?options=-c%20default_transaction_isolation%3Dserializable", database.url());
    let error = open(&url, None).check_schema().await.unwrap_err();
    assert!(error.message.contains("default_transaction_isolation"), "{error}");
}
