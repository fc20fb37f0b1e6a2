//! The same command against PostgreSQL, on a private cluster.

use postbox_testkit::postgres::PgCluster;

use crate::bench::Bench;
use crate::receiver::Receiver;

#[test]
fn the_whole_way_from_migrate_to_prune() {
    let database = PgCluster::shared().database();
    let (bench, receiver) = (Bench::on(database.url()), Receiver::start());
    bench.run(&["status"]).ended_with(4).complains(&["postbox migrate"]);
    bench.run(&["migrate"]).succeeded().says(&["applied migration"]);
    bench.run(&["migrate"]).succeeded().says(&["the tables are current"]);
    bench.write_destination(&receiver.url(), "");
    database.sql(
        "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
         SELECT 'order', '42', 'order.confirmed', '{\"total\": 12}' FROM generate_series(1, 10)",
    );
    bench.run(&["relay", "--once"]).succeeded().says(&["10 delivered"]);
    let sequence: Vec<i64> =
        receiver.received().iter().map(|request| request.body["sequence"].as_i64().unwrap()).collect();
    assert_eq!(sequence, (1..=10).collect::<Vec<_>>());
    bench.run(&["status", "--max-lag", "1s"]).succeeded().says(&["pending     0"]);
    bench.run(&["replay", "--all"]).succeeded().says(&["10 deliveries put back"]);
    bench.run(&["relay", "--once"]).succeeded();
    assert_eq!(receiver.received().len(), 20);
    bench.run(&["prune", "--older-than", "0s"]).succeeded().says(&["10 events removed"]);
}

#[test]
fn dead_letters_come_back() {
    let database = PgCluster::shared().database();
    let (bench, receiver) = (Bench::on(database.url()), Receiver::start());
    bench.run(&["migrate"]).succeeded();
    bench.write_destination(&receiver.url(), "");
    database.sql(
        "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
         VALUES ('order', '1', 'order.confirmed', '{}'), ('order', '2', 'order.confirmed', '{}')",
    );
    receiver.answer(500);
    bench.exhaust_retries();
    bench.run(&["status"]).succeeded().says(&["dead        2", "dead-letters list"]);
    bench.run(&["dead-letters", "discard", "--aggregate-id", "1"]).succeeded();
    receiver.answer(200);
    bench.run(&["dead-letters", "replay", "--all"]).succeeded().says(&["1 delivery put back"]);
    bench.run(&["relay", "--once"]).succeeded().says(&["1 delivered"]);
}

#[test]
fn the_tables_can_live_in_a_schema_of_their_own() {
    let database = PgCluster::shared().database();
    let bench = Bench::on(database.url());
    database.sql("CREATE SCHEMA events");
    bench.run(&["migrate", "--schema", "events"]).succeeded();
    bench.run(&["status", "--schema", "events"]).succeeded();
    bench.run(&["status"]).ended_with(4);
    assert_eq!(database.sql("SELECT to_regclass('events.outbox') IS NOT NULL").trim(), "t");
}

#[test]
fn the_printed_migration_makes_the_tables_that_the_command_uses() {
    let database = PgCluster::shared().database();
    let bench = Bench::on(database.url());
    let sql = bench.run(&["migrate", "--print"]).succeeded().out;
    database.sql(&sql);
    bench.run(&["migrate"]).succeeded().says(&["the tables are current"]);
}

#[test]
fn a_single_run_that_the_database_refuses_ends_with_the_reason() {
    let database = PgCluster::shared().database();
    let (bench, receiver) = (Bench::on(database.url()), Receiver::start());
    bench.run(&["migrate"]).succeeded();
    bench.write_destination(&receiver.url(), "");
    let role = format!("may_only_read_{}", database.name());
    database
        .sql(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role};"));
    let url = database.url();
    let as_reader = format!("postgres://{role}@{}", url.split_once('@').unwrap().1);
    bench
        .run(&["relay", "--once", "--database-url", &as_reader])
        .ended_with(5)
        .complains(&["permission denied", "docs/configuration.md"]);
}

#[test]
fn a_relay_that_is_told_of_events_goes_on_polling_while_nobody_tells_it() {
    let database = PgCluster::shared().database();
    let (bench, receiver) = (Bench::on(database.url()), Receiver::start());
    bench.run(&["migrate", "--notify", "on"]).succeeded().says(&["new events are announced"]);
    bench.write_destination(&receiver.url(), "");
    let config = std::fs::read_to_string(bench.path("postbox.toml")).unwrap();
    let config = config.replace("[relay]", "[relay]\nwake_up = \"notify\"");
    std::fs::write(bench.path("postbox.toml"), config).unwrap();
    let mut relay = bench.start(&["relay"]);
    let produce = || {
        database.sql(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', '42', 'order.confirmed', '{}')",
        )
    };
    bench.wait_for_log("heard of as they commit");
    produce();
    receiver.wait_for(1);
    bench.run(&["migrate", "--notify", "off"]).succeeded();
    let listeners = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                     WHERE datname = current_database() AND query LIKE '%outbox_announce%' AND pid <> pg_backend_pid()";
    database.sql(listeners);
    bench.wait_for_log("polling until it works");
    produce();
    receiver.wait_for(2);
    bench.run(&["migrate", "--notify", "on"]).succeeded();
    crate::bench::eventually(|| bench.log().matches("heard of as they commit").count() == 2);
    relay.signal("TERM");
    assert_eq!(relay.wait(), Some(0));
}

#[test]
fn endpoints_are_added_disabled_by_an_answer_enabled_and_removed_under_a_running_relay() {
    let database = PgCluster::shared().database();
    let (bench, receiver) = (Bench::on(database.url()), Receiver::start());
    bench.run(&["migrate"]).succeeded();
    bench.write_endpoints("");
    let produce = || {
        database.sql(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', '42', 'order.confirmed', '{}')",
        )
    };
    let taken_over = || {
        bench.wait_for_destinations(
            database.sql("SELECT version FROM outbox_destination_version").trim().parse().unwrap(),
        );
    };
    let _relay = bench.start(&["relay"]);
    bench.wait_for_relays(1);
    bench.run(&["destinations", "add", "acme", "--url", &receiver.url(), "--delays", "0s"]).succeeded();
    taken_over();
    produce();
    assert!(receiver.wait_for(1)[0].header("webhook-signature").is_some());
    receiver.answer(410);
    produce();
    produce();
    let disabled = "SELECT count(disabled_at) FROM outbox_destination";
    Bench::wait_for_sql(&database, disabled, "1");
    let before = receiver.received().len();
    receiver.answer(200);
    bench.run(&["destinations", "enable", "acme"]).succeeded();
    let sequences: Vec<i64> = receiver.wait_for(before + 2)[before..]
        .iter()
        .map(|request| request.body["sequence"].as_i64().unwrap())
        .collect();
    assert_eq!(sequences, [2, 3]);
    let delivered = "SELECT count(*) FROM outbox_delivery WHERE state = 'delivered'";
    Bench::wait_for_sql(&database, delivered, "3");
    bench.run(&["destinations", "remove", "acme"]).succeeded().says(&["acme removed"]);
    assert_eq!(database.sql("SELECT count(*) FROM outbox_destination_secret").trim(), "0");
}
