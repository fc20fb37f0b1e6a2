//! What people get wrong, and whether the answer helps.

use std::time::{Duration, Instant};

use crate::bench::{Bench, Ended};

#[test]
fn a_mistyped_command_is_named_with_the_one_that_was_meant() {
    Bench::empty().run(&["staus"]).ended_with(2).complains(&["unrecognized subcommand 'staus'", "'status'"]);
}

#[test]
fn the_help_lists_every_command_and_every_exit_code() {
    Bench::empty().run(&["--help"]).succeeded().says(&[
        "init",
        "migrate",
        "relay",
        "status",
        "events",
        "dead-letters",
        "replay",
        "prune",
        "completions",
        "--database-url",
        "POSTBOX_DATABASE_URL",
        "Exit codes:",
        "130",
    ]);
}

#[test]
fn without_a_database_every_way_to_name_one_is_told() {
    Bench::empty().run(&["status"]).ended_with(2).complains(&[
        "no database is named",
        "--database-url",
        "POSTBOX_DATABASE_URL",
        "postbox init",
        "postgres://",
        "sqlite:",
    ]);
}

#[test]
fn a_database_of_another_kind_is_refused_with_the_kinds_there_are() {
    let bench = Bench::empty();
    for (url, complaint) in [
        ("mysql://root:hunter2@db/shop", "mysql is not in this build"),
        ("oracle://root:hunter2@db/shop", "no database of scheme"),
        ("root:hunter2@db/shop", "no database of scheme"),
        ("/var/lib/hunter2.db", "has no scheme"),
    ] {
        let ended =
            bench.run(&["status", "--database-url", url]).ended_with(2).complains(&[complaint, "sqlite:"]);
        assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    }
}

#[test]
fn missing_tables_are_an_error_that_names_the_remedy() {
    let bench = Bench::on("sqlite:shop.db");
    bench.sqlite().execute_batch("CREATE TABLE orders (id)").unwrap();
    for args in [
        &["status"][..],
        &["events", "list"],
        &["events", "show", "0190f2a4-6c3e-7b1a-8c2d-000000000001"],
        &["dead-letters", "list"],
        &["dead-letters", "replay", "--all"],
        &["replay", "--all"],
        &["prune"],
        &["prune", "--dry-run"],
    ] {
        let ended = bench.run(args);
        assert_eq!(ended.code, Some(4), "{args:?}: {}", ended.err);
        ended.complains(&["postbox migrate"]);
    }
}

#[test]
fn a_database_that_is_not_there_ends_quickly_with_its_own_code() {
    Bench::on("sqlite:nowhere/shop.db").run(&["status"]).ended_with(2).complains(&["nowhere/shop.db"]);
    let began = Instant::now();
    let closed = "postgres://app:hunter2@127.0.0.1:1/shop";
    let ended = Bench::on(closed).run(&["status"]).ended_with(3).complains(&["--database-url"]);
    assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_relay_without_destinations_says_how_to_describe_one() {
    let bench = Bench::migrated();
    bench.run(&["relay"]).ended_with(2).complains(&["no configuration", "postbox init", "[[destination]]"]);
    bench.run(&["init"]).succeeded();
    bench
        .run(&["relay"])
        .ended_with(2)
        .complains(&["postbox.toml has no [[destination]]", "kind = \"webhook\""]);
}

#[test]
fn init_writes_a_file_that_works_and_never_overwrites_one() {
    let bench = Bench::on("sqlite:shop.db");
    bench.run(&["init"]).succeeded().says(&["wrote postbox.toml", "postbox migrate"]);
    bench.run(&["migrate"]).succeeded();
    bench.write("postbox.toml", "[relay]\n# mine\n");
    bench.run(&["init"]).ended_with(2).complains(&["postbox.toml exists", "--force"]);
    assert_eq!(std::fs::read_to_string(bench.path("postbox.toml")).unwrap(), "[relay]\n# mine\n");
    bench.run(&["init", "--force"]).succeeded();
    bench.run(&["init", "--config", "other.toml"]).succeeded().says(&["other.toml"]);
    assert_eq!(
        std::fs::read_to_string(bench.path("postbox.toml")).unwrap(),
        std::fs::read_to_string(bench.path("other.toml")).unwrap()
    );
}

#[test]
fn migrating_twice_does_nothing_the_second_time() {
    let bench = Bench::on("sqlite:shop.db");
    bench.run(&["migrate"]).succeeded().says(&["applied migration"]);
    bench.run(&["migrate"]).succeeded().says(&["the tables are current"]);
}

#[test]
fn the_printed_migration_makes_the_tables_that_the_command_uses() {
    let bench = Bench::on("sqlite:shop.db");
    let sql = bench.run(&["migrate", "--print"]).succeeded().out;
    assert!(!bench.path("shop.db").exists(), "printing connected to the database");
    bench.sqlite().execute_batch(&sql).unwrap();
    bench.run(&["migrate"]).succeeded().says(&["the tables are current"]);
    bench.run(&["status"]).succeeded();
}

#[test]
fn changing_everything_has_to_be_said() {
    let bench = Bench::migrated();
    for args in [&["dead-letters", "replay"][..], &["dead-letters", "discard"], &["replay"]] {
        bench.run(args).ended_with(2).complains(&["no filter", "--all", "--dry-run"]);
    }
}

#[test]
fn a_listing_that_is_cut_off_by_its_reader_is_no_error() {
    let bench = Bench::migrated();
    for n in 0..300 {
        bench.produce(&n.to_string(), "order.confirmed");
    }
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "\"$0\" events list --limit 300 | head -1; echo \"code ${PIPESTATUS:-0}\""])
        .arg(env!("CARGO_BIN_EXE_postbox"))
        .current_dir(bench.path(""))
        .env("POSTBOX_DATABASE_URL", "sqlite:shop.db");
    let ended = Ended::of(command).says(&["EVENT", "code 0"]);
    assert_eq!(ended.err, "");
}

#[test]
fn completions_are_printed_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        Bench::empty().run(&["completions", shell]).succeeded().says(&["dead-letters"]);
    }
}

#[test]
fn announcements_are_asked_of_a_database_that_has_none() {
    let bench = Bench::migrated();
    bench.run(&["migrate", "--notify", "on"]).ended_with(2).complains(&["needs PostgreSQL", "poll_interval"]);
}
