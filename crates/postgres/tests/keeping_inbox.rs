//! The operator's half of the inbox: a database of its own, and forgetting in time.

#![cfg(feature = "store")]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use std::time::Duration;

use jiff::{Timestamp, ToSpan as _};
use postbox_core::inbox::Inbox as _;
use postbox_core::operations::{Operations as _, PrunePolicy};
use postbox_core::store::{Store as _, StoreErrorKind};
use postbox_postgres::PostgresStore;
use postbox_postgres::schema::{inbox_migration_sql, migration_sql};
use postbox_testkit::postgres::{Database, PgCluster};

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn open(database: &Database<'_>) -> PostgresStore {
    PostgresStore::connect(&database.url(), None).unwrap()
}

/// Tables, columns, constraints, indexes and functions, independent of the order in which they were made.
fn anatomy(database: &Database<'_>) -> String {
    database.sql(
        "SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || coalesce(column_default, '')
         FROM information_schema.columns WHERE table_schema = 'public'
         UNION ALL SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
         WHERE connamespace = 'public'::regnamespace
         UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
         UNION ALL SELECT p.oid::regprocedure || ' ' || md5(prosrc) || ' ' || coalesce(proacl::text, '')
         FROM pg_proc p WHERE pronamespace = 'public'::regnamespace
         ORDER BY 1",
    )
}

#[tokio::test]
async fn a_consumers_database_gets_an_inbox_and_no_outbox() {
    let database = PgCluster::shared().database();
    let store = open(&database);
    assert_eq!(store.migrate_inbox().await.unwrap(), [7]);
    assert!(store.migrate_inbox().await.unwrap().is_empty());
    let tables = "SELECT string_agg(relname, ' ' ORDER BY relname COLLATE \"C\") FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    assert_eq!(database.sql(tables), "inbox inbox_sequence outbox_retention outbox_schema");
    let error = store.check_schema().await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::SchemaMissing);
    assert!(error.message.contains("only an inbox"), "{error}");
}

#[tokio::test]
async fn an_inbox_alone_can_become_everything() {
    let (grown, whole) = (PgCluster::shared().database(), PgCluster::shared().database());
    open(&grown).migrate_inbox().await.unwrap();
    let id = "0198f0c2-7d2e-7c31-9d60-0d6f3f0a51c4";
    assert_eq!(grown.sql(&format!("SELECT inbox_accept('billing', '{id}')")), "first");
    open(&grown).migrate().await.unwrap();
    open(&grown).check_schema().await.unwrap();
    assert_eq!(grown.sql(&format!("SELECT inbox_accept('billing', '{id}')")), "duplicate");
    open(&whole).migrate().await.unwrap();
    assert!(open(&whole).migrate_inbox().await.unwrap().is_empty());
    assert_eq!(anatomy(&grown), anatomy(&whole));
}

#[tokio::test]
async fn the_printed_inbox_is_the_migrated_one() {
    let (printed, migrated) = (PgCluster::shared().database(), PgCluster::shared().database());
    printed.sql(&inbox_migration_sql(None));
    open(&migrated).migrate_inbox().await.unwrap();
    assert_eq!(anatomy(&printed), anatomy(&migrated));
    assert!(open(&printed).migrate_inbox().await.unwrap().is_empty());
    printed.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    printed.sql(&migration_sql(None));
    open(&printed).check_schema().await.unwrap();
}

#[tokio::test]
async fn old_events_are_forgotten_in_batches_and_what_was_kept_is_remembered() {
    let database = PgCluster::shared().database();
    let store = open(&database);
    store.migrate_inbox().await.unwrap();
    assert_eq!(store.inbox_retention().await.unwrap(), None);
    database.sql(
        "INSERT INTO inbox (consumer, event_id, received_at)
         SELECT 'billing', gen_random_uuid(), now() - n * interval '1 day' FROM generate_series(99, 0, -1) AS n",
    );
    let mut forgotten = Vec::new();
    let (mut after, mut done) = (0, false);
    while !done {
        let step = store.prune_inbox(30 * DAY, after, 20).await.unwrap();
        forgotten.push(step.changed);
        (after, done) = (step.cursor, step.done);
    }
    assert_eq!(forgotten, [20, 20, 20, 10], "the young ones end it, not the end of the table");
    assert_eq!(database.sql("SELECT count(*) FROM inbox"), "30");
    assert_eq!(store.received("billing", None, 100).await.unwrap().len(), 30);

    // A shorter window for once does not bring anything back.
    store.prune_inbox(20 * DAY, 0, 1_000).await.unwrap();
    store.prune_inbox(40 * DAY, 0, 1_000).await.unwrap();
    let retention = store.inbox_retention().await.unwrap().unwrap();
    assert_eq!(retention.keep, 40 * DAY);
    let twenty_days_ago = Timestamp::now() - (20 * 24).hours();
    assert!(retention.complete_since <= twenty_days_ago, "{retention:?}");
    assert!(retention.complete_since > twenty_days_ago - 24.hours(), "{retention:?}");
}

#[tokio::test]
async fn pruning_the_outbox_is_remembered_too() {
    let database = PgCluster::shared().database();
    let store = open(&database);
    store.migrate().await.unwrap();
    let policy = PrunePolicy { older_than: 30 * DAY, dead_older_than: 90 * DAY };
    store.prune(&policy, 0, 100).await.unwrap();
    assert_eq!(
        database.sql(
            "SELECT scope, keep_ms / 86400000, (now() - complete_since) BETWEEN interval '29 days' AND interval '31 days'
             FROM outbox_retention"
        ),
        "outbox|90|t"
    );
}

#[tokio::test]
async fn pages_follow_on_from_each_other_in_order_of_event_id() {
    let database = PgCluster::shared().database();
    let store = open(&database);
    store.migrate_inbox().await.unwrap();
    database.sql(
        "INSERT INTO inbox (consumer, event_id) SELECT 'billing', gen_random_uuid() FROM generate_series(1, 25);
         INSERT INTO inbox (consumer, event_id) SELECT 'shipping', gen_random_uuid() FROM generate_series(1, 25)",
    );
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = store.received("billing", after, 10).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.event_id);
        pages.push(page);
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
    let ids: Vec<_> = pages.iter().flatten().map(|row| row.event_id).collect();
    assert!(ids.is_sorted() && ids.len() == 25);
    assert_eq!(store.estimate_received("billing").await.unwrap(), 25);
}
