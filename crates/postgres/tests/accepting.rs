//! The inbox: an event takes effect once, whatever is repeated and whoever comes at the same time.

#![cfg(all(feature = "store", feature = "tokio-postgres"))]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

mod shop;

use postbox_core::inbox::{Acceptance, Inbox as _, Place, Succession};
use postbox_postgres::PostgresStore;
use postbox_postgres::consumer::AcceptError;
use postbox_postgres::consumer::tokio_postgres::{accept, accept_in, accept_placed, accept_placed_in};
use postbox_testkit::postgres::{Database, PgCluster};
use postbox_testkit::process::eventually;
use shop::connect;
use tokio_postgres::{Client, IsolationLevel};
use uuid::Uuid;

/// A consumer's own database: an inbox, a table of invoices, and no outbox.
struct Billing {
    database: Database<'static>,
}

impl Billing {
    async fn open() -> Self {
        let database = PgCluster::shared().database();
        database.sql("CREATE TABLE invoice (event_id uuid NOT NULL)");
        PostgresStore::connect(&database.url(), None).unwrap().migrate_inbox().await.unwrap();
        Self { database }
    }

    async fn client(&self) -> Client {
        connect(&self.database.url()).await
    }

    /// Waits until a session waits for another one's transaction.
    fn somebody_waits(&self) {
        eventually("a session waits for a lock", || {
            self.database.sql(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'",
            ) == "1"
        });
    }
}

/// One attempt to act on `event` in a transaction of its own.
async fn receive(client: &mut Client, event: &Uuid, commit: bool) -> Result<Acceptance, AcceptError> {
    let mut tx = client.transaction().await.unwrap();
    let acceptance = accept(&mut tx, "billing", event).await?;
    if acceptance == Acceptance::First {
        tx.execute("INSERT INTO invoice VALUES ($1)", &[event]).await.unwrap();
    }
    if commit {
        tx.commit().await.unwrap()
    } else {
        tx.rollback().await.unwrap()
    }
    Ok(acceptance)
}

#[tokio::test]
async fn an_event_is_first_until_a_transaction_that_accepted_it_commits() {
    let billing = Billing::open().await;
    let mut client = billing.client().await;
    let event = Uuid::now_v7();
    assert_eq!(receive(&mut client, &event, false).await.unwrap(), Acceptance::First);
    assert_eq!(receive(&mut client, &event, true).await.unwrap(), Acceptance::First);
    assert_eq!(receive(&mut client, &event, true).await.unwrap(), Acceptance::Duplicate);
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(accept(&mut tx, "shipping", &event).await.unwrap(), Acceptance::First, "another consumer");
    tx.commit().await.unwrap();
    assert_eq!(billing.database.sql("SELECT count(*) FROM invoice"), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_at_once_the_second_waits_and_sees_what_became_of_the_first() {
    let billing = Billing::open().await;
    let (mut winner, mut waiter) = (billing.client().await, Some(billing.client().await));
    for (commits, then) in [(true, Acceptance::Duplicate), (false, Acceptance::First)] {
        let event = Uuid::now_v7();
        let mut tx = winner.transaction().await.unwrap();
        assert_eq!(accept(&mut tx, "billing", &event).await.unwrap(), Acceptance::First);
        let mut client = waiter.take().unwrap();
        let second = tokio::spawn(async move {
            let seen = receive(&mut client, &event, true).await;
            (seen, client)
        });
        billing.somebody_waits();
        if commits {
            tx.commit().await.unwrap()
        } else {
            tx.rollback().await.unwrap()
        }
        let (seen, client) = second.await.unwrap();
        assert_eq!(seen.unwrap(), then);
        waiter = Some(client);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_exactly_one_acts() {
    const RACERS: usize = 16;
    const EVENTS: usize = 40;
    let billing = Billing::open().await;
    let events: Vec<Uuid> = (0..EVENTS).map(|_| Uuid::now_v7()).collect();
    let mut racers = Vec::new();
    for racer in 0..RACERS {
        let (mut client, events) = (billing.client().await, events.clone());
        racers.push(tokio::spawn(async move {
            for (index, event) in events.iter().enumerate() {
                // Some of those who come first give up.
                let _ = receive(&mut client, event, (index + racer) % 4 != 0).await.unwrap();
            }
        }));
    }
    for racer in racers {
        racer.await.unwrap();
    }
    let acted = "SELECT count(*) || ' ' || count(DISTINCT event_id) FROM invoice";
    assert_eq!(billing.database.sql(acted), format!("{EVENTS} {EVENTS}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_cannot_see_the_winner_is_told_to_retry() {
    let billing = Billing::open().await;
    let (mut old, mut new) = (billing.client().await, billing.client().await);
    for isolation in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let event = Uuid::now_v7();
        let mut tx = old.build_transaction().isolation_level(isolation).start().await.unwrap();
        tx.query("SELECT FROM invoice", &[]).await.unwrap();
        assert_eq!(receive(&mut new, &event, true).await.unwrap(), Acceptance::First);
        let error = accept(&mut tx, "billing", &event).await.unwrap_err();
        assert!(matches!(error, AcceptError::Conflict(_)), "{error:?}");
        tx.rollback().await.unwrap();
        let mut again = old.build_transaction().isolation_level(isolation).start().await.unwrap();
        assert_eq!(accept(&mut again, "billing", &event).await.unwrap(), Acceptance::Duplicate);
        again.rollback().await.unwrap();
    }
}

fn place(event_id: Uuid, sequence: i64) -> Place<'static> {
    Place { event_id, aggregate_type: "order", aggregate_id: "4711", sequence }
}

#[tokio::test]
async fn a_consumer_can_tell_what_follows_on_from_gaps_repeats_and_stragglers() {
    let billing = Billing::open().await;
    let mut client = billing.client().await;
    let ids: Vec<Uuid> = (0..5).map(|_| Uuid::now_v7()).collect();
    let mut tx = client.transaction().await.unwrap();
    for (event, sequence, expected) in [
        (0, 1, Succession::Next),
        (1, 2, Succession::Next),
        (1, 2, Succession::Duplicate),
        (3, 4, Succession::Gap),
        (2, 3, Succession::Stale),
        (2, 3, Succession::Duplicate),
        (4, 5, Succession::Next),
    ] {
        let seen = accept_placed(&mut tx, "billing", &place(ids[event], sequence)).await.unwrap();
        assert_eq!(seen, expected, "sequence {sequence}");
    }
    let late = Place { aggregate_id: "9", ..place(Uuid::now_v7(), 7) };
    assert_eq!(accept_placed(&mut tx, "billing", &late).await.unwrap(), Succession::Gap, "begins at 7");
    tx.commit().await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    let error = accept_placed(&mut tx, "billing", &place(Uuid::now_v7(), 0)).await.unwrap_err();
    assert!(matches!(error, AcceptError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refused_gap_leaves_nothing_behind() {
    let billing = Billing::open().await;
    let mut client = billing.client().await;
    let (first, second) = (place(Uuid::now_v7(), 1), place(Uuid::now_v7(), 2));
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(accept_placed(&mut tx, "billing", &second).await.unwrap(), Succession::Gap);
    tx.rollback().await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    for event in [first, second] {
        assert_eq!(accept_placed(&mut tx, "billing", &event).await.unwrap(), Succession::Next);
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn the_inbox_is_found_in_a_schema_of_its_own_or_missed_by_name() {
    let database = PgCluster::shared().database();
    PostgresStore::connect(&database.url(), Some("in box")).unwrap().migrate_inbox().await.unwrap();
    let mut client = connect(&database.url()).await;
    let (event, next) = (Uuid::now_v7(), place(Uuid::now_v7(), 1));
    let mut tx = client.transaction().await.unwrap();
    assert_eq!(accept_in("in box", &mut tx, "billing", &event).await.unwrap(), Acceptance::First);
    assert_eq!(accept_placed_in("in box", &mut tx, "billing", &next).await.unwrap(), Succession::Next);
    let error = accept(&mut tx, "billing", &event).await.unwrap_err();
    assert!(matches!(error, AcceptError::SchemaMissing(_)), "{error:?}");
}

#[tokio::test]
async fn a_name_without_letters_is_refused() {
    let billing = Billing::open().await;
    let mut client = billing.client().await;
    for name in ["", &"x".repeat(101)] {
        let mut tx = client.transaction().await.unwrap();
        let error = accept(&mut tx, name, &Uuid::now_v7()).await.unwrap_err();
        assert!(
            matches!(&error, AcceptError::Refused { message, .. }
            if message.contains("inbox_consumer_length")),
            "{error:?}"
        );
    }
}
