//! `postbox reconcile`: each kind of difference is found, named and told, and nothing else.

use postbox_testkit::postgres::PgCluster;
use serde_json::Value;

use crate::bench::{Bench, Ended};
use crate::receiver::Receiver;

/// Twelve events of three aggregates, all delivered to "billing", on SQLite, and a consumer's inbox elsewhere.
struct Books {
    bench: Bench,
    events: Vec<String>,
}

impl Books {
    fn delivered() -> Self {
        let (bench, receiver) = (Bench::migrated(), Receiver::start());
        bench.write_destination(&receiver.url(), "");
        let events =
            (0..12).map(|n| bench.produce(&(n % 3).to_string(), "order.confirmed")).collect::<Vec<_>>();
        bench.run(&["relay", "--once"]).succeeded();
        bench.run(&["migrate", "--inbox", "--database-url", "sqlite:billing.db"]).succeeded();
        Self { bench, events }
    }

    /// Accepts events in this order.
    fn accept(&self, events: impl IntoIterator<Item = usize>) {
        let inbox = rusqlite::Connection::open(self.bench.path("billing.db")).unwrap();
        for event in events {
            let insert = "INSERT INTO inbox (consumer, event_id) VALUES ('billing', ?1)";
            inbox.execute(insert, [&self.events[event]]).unwrap();
        }
    }

    fn reconcile(&self, more: &[&str]) -> Ended {
        self.bench.run(&[&["reconcile", "--inbox-url", "sqlite:billing.db"], more].concat())
    }

    /// The comparison as JSON, and whether the exit code says that something is missing.
    fn judged(&self) -> (Value, bool) {
        let ended = self.reconcile(&["--json"]);
        (ended.json()["destinations"][0].clone(), ended.code == Some(1))
    }
}

#[track_caller]
fn assert_counts(judged: &Value, missing: u64, extra: u64, duplicated: u64, out_of_order: u64) {
    let count = |kind: &str| judged[kind]["count"].as_u64().unwrap();
    assert_eq!(
        [count("missing"), count("extra"), count("duplicated"), count("out_of_order")],
        [missing, extra, duplicated, out_of_order],
        "{judged:#}"
    );
}

#[test]
fn two_sides_that_agree_are_told_so() {
    let books = Books::delivered();
    books.accept(0..12);
    let (judged, missing) = books.judged();
    assert_counts(&judged, 0, 0, 0, 0);
    assert_eq!(
        (judged["delivered"].as_u64(), judged["received"].as_u64(), missing),
        (Some(12), Some(12), false)
    );
    books.reconcile(&[]).succeeded().says(&["        12  delivered", "         0  missing"]);
}

#[test]
fn what_is_missing_is_named_with_its_story_and_ends_with_1() {
    let books = Books::delivered();
    books.accept((0..12).filter(|event| *event != 4 && *event != 9));
    let (judged, missing) = books.judged();
    assert_counts(&judged, 2, 0, 0, 0);
    assert!(missing);
    assert_eq!(judged["missing"]["events"], serde_json::json!([books.events[4], books.events[9]]));
    books
        .reconcile(&["--show", "1"])
        .ended_with(1)
        .says(&["missing:\nevent", &books.events[4], "-> billing: delivered", "missing: 1 more"])
        .complains(&["2 events are missing"]);
}

#[test]
fn an_event_that_was_never_sent_there_is_extra() {
    let books = Books::delivered();
    books.accept(0..12);
    let unrouted = books.bench.produce("7", "customer.moved");
    books.bench.run(&["relay", "--once"]).succeeded();
    let inbox = rusqlite::Connection::open(books.bench.path("billing.db")).unwrap();
    let stranger = uuid::Uuid::now_v7().to_string();
    for event in [&unrouted, &stranger] {
        inbox.execute("INSERT INTO inbox (consumer, event_id) VALUES ('billing', ?1)", [event]).unwrap();
    }
    let (judged, missing) = books.judged();
    assert_counts(&judged, 0, 2, 0, 0);
    assert!(!missing);
    books.reconcile(&[]).succeeded().says(&["extra:", &stranger, "not in the outbox", "unrouted"]);
}

#[test]
fn order_counts_within_an_aggregate_alone() {
    let books = Books::delivered();
    // Aggregates 0, 1 and 2 take turns: 3 before 0 is another order, 4 before 1 of a different one is not looked at.
    books.accept([2, 1, 3, 0, 5, 4, 6, 7, 8, 9, 10, 11]);
    let (judged, _) = books.judged();
    assert_counts(&judged, 0, 0, 0, 1);
    assert_eq!(judged["out_of_order"]["events"][0], books.events[0]);
}

#[test]
fn a_destination_that_promises_no_order_is_not_judged_by_it() {
    let books = Books::delivered();
    books.accept([2, 1, 3, 0, 5, 4, 6, 7, 8, 9, 10, 11]);
    books.bench.write_destination("http://127.0.0.1:9/", "ordering = \"none\"");
    let (judged, _) = books.judged();
    assert_counts(&judged, 0, 0, 0, 0);
}

#[test]
fn a_list_of_ids_is_as_good_as_an_inbox_and_shows_what_came_twice() {
    let books = Books::delivered();
    let ids = |events: &[usize]| {
        events.iter().map(|event| format!("{}\n", books.events[*event])).collect::<String>()
    };
    books.bench.write("ids", &format!("event_id\n{}", ids(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 3, 3])));
    let judged = books.bench.run(&["reconcile", "--ids", "ids", "--json"]).succeeded().json();
    assert_counts(&judged["destinations"][0], 0, 0, 1, 0);
    assert_eq!(judged["destinations"][0]["received"], 12);
    assert_eq!(judged["stories"][0]["event_id"], books.events[3]);
    books.bench.write("ids", &ids(&[0, 1, 2]));
    books.bench.run(&["reconcile", "--ids", "ids"]).ended_with(1).complains(&["9 events are missing"]);
    books.bench.write("ids", "nonsense");
    books.bench.run(&["reconcile", "--ids", "ids"]).ended_with(2).complains(&["line 1 of ids"]);
}

#[test]
fn what_is_not_delivered_is_not_missing() {
    let books = Books::delivered();
    books.accept(0..12);
    books.bench.produce("8", "order.confirmed");
    let receiver = Receiver::start();
    receiver.answer(500);
    books.bench.write_destination(&receiver.url(), "");
    books.bench.exhaust_retries();
    books.bench.produce("9", "order.confirmed");
    let (judged, missing) = books.judged();
    assert_counts(&judged, 0, 0, 0, 0);
    assert_eq!((judged["given_up"].as_u64(), judged["open"].as_u64(), missing), (Some(1), Some(1), false));
}

#[test]
fn what_a_side_has_forgotten_is_not_held_against_the_other() {
    let books = Books::delivered();
    books.accept(0..12);
    books
        .bench
        .run(&["inbox", "prune", "--older-than", "0s", "--database-url", "sqlite:billing.db"])
        .succeeded();
    let (judged, missing) = books.judged();
    assert_counts(&judged, 0, 0, 0, 0);
    assert_eq!((judged["beyond_memory"].as_u64(), missing), (Some(12), false));

    let books = Books::delivered();
    books.accept(0..12);
    books.bench.run(&["prune", "--older-than", "0s"]).succeeded();
    let (judged, _) = books.judged();
    assert_counts(&judged, 0, 0, 0, 0);
    assert_eq!(judged["beyond_memory"], 12);
}

#[test]
fn the_question_can_be_about_a_time() {
    let books = Books::delivered();
    let (judged, _) = books.judged();
    assert_counts(&judged, 12, 0, 0, 0);
    let of = |more: &[&str]| {
        let ended = books.reconcile(&[&["--json"], more].concat());
        ended.json()["destinations"][0]["missing"]["count"].as_u64()
    };
    assert_eq!(of(&["--since", "1h"]), Some(12));
    assert_eq!(of(&["--until", "1h"]), Some(0));
}

#[test]
fn both_sides_on_postgresql_in_several_pages() {
    let (shop, billing) = (PgCluster::shared().database(), PgCluster::shared().database());
    let (bench, receiver) = (Bench::on(shop.url()), Receiver::start());
    bench.run(&["migrate"]).succeeded();
    bench.run(&["migrate", "--inbox", "--database-url", &billing.url()]).succeeded();
    bench.write_destination(&receiver.url(), "");
    shop.sql(
        "INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
         SELECT md5(n::text)::uuid, 'order', n % 100, 'order.confirmed', '{}' FROM generate_series(1, 12000) AS n;
         INSERT INTO outbox_delivery (outbox_id, lane_id, sent_at, attempts, shard, state, destination)
         SELECT id, lane_id, now(), 1, shard, 'delivered', 'billing' FROM outbox;
         DELETE FROM outbox_pending",
    );
    billing.sql(
        "INSERT INTO inbox (consumer, event_id)
         SELECT 'billing', md5(n::text)::uuid FROM generate_series(1, 12000) AS n",
    );
    let args = ["reconcile", "--inbox-url", &billing.url(), "--json"];
    let judged = bench.run(&args).succeeded().json()["destinations"][0].clone();
    assert_counts(&judged, 0, 0, 0, 0);
    assert_eq!((judged["delivered"].as_u64(), judged["received"].as_u64()), (Some(12_000), Some(12_000)));
    billing.sql("DELETE FROM inbox WHERE position % 1000 = 0");
    let ended = bench.run(&args).ended_with(1);
    assert_counts(&ended.json()["destinations"][0], 12, 0, 0, 0);
    bench.run(&["reconcile", "--destination", "a", "--destination", "b", "--ids", "-"]).ended_with(2);
}
