//! `postbox migrate --inbox`, `postbox inbox prune`, and the warning of `postbox status`.

use postbox_testkit::postgres::PgCluster;
use uuid::Uuid;

use crate::bench::Bench;

#[test]
fn a_consumer_gets_an_inbox_of_its_own() {
    let database = PgCluster::shared().database();
    for (bench, version) in [(Bench::on("sqlite:shop.db"), "2"), (Bench::on(database.url()), "7")] {
        bench.run(&["migrate", "--inbox"]).succeeded().says(&[&format!("applied migration {version}")]);
        bench.run(&["migrate", "--inbox"]).succeeded().says(&["the tables are current"]);
        bench.run(&["inbox", "prune"]).succeeded().says(&["0 events forgotten"]);
        bench.run(&["status"]).ended_with(4).complains(&["postbox migrate"]);
        bench.run(&["migrate"]).succeeded().says(&["applied migration"]);
        bench.run(&["status"]).succeeded();
    }
}

#[test]
fn the_printed_inbox_is_what_the_command_makes() {
    let database = PgCluster::shared().database();
    let bench = Bench::on(database.url());
    database.sql(&bench.run(&["migrate", "--inbox", "--print"]).succeeded().out);
    bench.run(&["migrate", "--inbox"]).succeeded().says(&["the tables are current"]);
}

#[test]
fn old_events_are_forgotten_and_a_bound_on_batches_says_when_some_are_left() {
    let bench = Bench::on("sqlite:shop.db");
    bench.run(&["migrate", "--inbox"]).succeeded();
    let mut connection = bench.sqlite();
    let transaction = connection.transaction().unwrap();
    for _ in 0..5_001 {
        transaction
            .execute(
                "INSERT INTO inbox (consumer, event_id, received_at) VALUES ('billing', ?1, 1600000000000)",
                [Uuid::now_v7().to_string()],
            )
            .unwrap();
    }
    transaction.commit().unwrap();
    bench
        .run(&["inbox", "prune", "--max-batches", "1"])
        .ended_with(1)
        .says(&["5000 events forgotten"])
        .complains(&["did not keep up"]);
    bench.run(&["inbox", "prune"]).succeeded().says(&["1 event forgotten"]);
}

#[test]
fn a_window_that_is_too_short_is_warned_of_wherever_the_inbox_is() {
    let consumer = PgCluster::shared().database();
    let bench = Bench::migrated();
    bench.write_destination("http://127.0.0.1:9/", "");
    bench.run(&["migrate", "--inbox", "--database-url", &consumer.url()]).succeeded();
    for inbox_url in [&consumer.url(), "sqlite:shop.db"] {
        let warns = |text: &str| {
            let status = bench.run(&["status", "--inbox-url", inbox_url]).succeeded();
            assert_eq!(status.out.contains("The inbox forgets"), !text.is_empty(), "{}", status.out);
            status.says(&[text]);
        };
        let prune = |age| {
            bench.run(&["inbox", "prune", "--older-than", age, "--database-url", inbox_url]).succeeded();
        };
        bench.sqlite().execute("DELETE FROM outbox_retention", []).unwrap();
        warns("");
        prune("30d");
        warns("the outbox is never pruned");
        bench.run(&["prune"]).succeeded();
        warns("after 30 d, but it can come again for 90 d");
        prune("91d");
        warns("");
    }
    let json = bench.run(&["status", "--json"]).succeeded().json();
    assert_eq!(json["inbox"]["kept_seconds"], 91 * 86_400);
    assert_eq!(json["inbox"]["too_short"], false);
}
