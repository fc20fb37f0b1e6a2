//! `postbox demo` as a user runs it.

use std::path::Path;
use std::process::{Command, Output};

fn demo(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_postbox"))
        .arg("demo")
        .args(arguments)
        .env("TMPDIR", folder)
        // The demo must not touch the user's own database.
        .env("POSTBOX_DATABASE_URL", "postgres://nobody@127.0.0.1:1/nowhere")
        .current_dir(folder)
        .output()
        .expect("the command can be started")
}

#[test]
fn the_demo_kills_its_relay_and_its_ledger_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(&["--orders", "300", "--json"], folder.path());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("kill -9"), "{told}");
    let ledger: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| ledger[name].as_u64().unwrap();
    assert_eq!(number("orders_committed") + number("orders_rolled_back"), 300);
    assert!(number("orders_rolled_back") > 0);
    assert_eq!(number("events_committed"), number("orders_committed") * 3);
    assert_eq!(number("delivered"), number("events_committed"));
    for none in ["lost", "phantoms", "order_violations"] {
        assert_eq!(number(none), 0, "{none}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was left behind");
}

#[test]
fn the_smallest_demo_ends_and_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(&["--orders", "1", "--keep"], folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("It adds up."));
    let kept = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    for name in ["shop.db", "postbox.toml", "relay.log"] {
        assert!(kept.join(name).is_file(), "{name} was not kept");
    }
}

#[test]
fn every_buyer_gets_one_message_whatever_dies_or_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(&["whatsapp", "--json"], folder.path());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("kill -9") && told.contains("held for an operator"), "{told}");
    assert!(told.contains("postbox destinations enable shop"), "{told}");
    let ledger: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&ledger["lost"], &ledger["duplicates"]), (&0.into(), &0.into()));
    let buyers = ledger["buyers"].as_array().unwrap();
    let told: Vec<_> = buyers
        .iter()
        .map(|buyer| {
            (buyer["orders"].as_u64().unwrap(), buyer["messages"].as_u64().unwrap(), &buyer["reported"])
        })
        .collect();
    let (read, nothing) = ("read".into(), "".into());
    assert_eq!(
        told,
        [(1, 1, &read), (1, 1, &read), (1, 1, &read), (1, 1, &read), (1, 1, &read), (0, 0, &nothing)]
    );
    assert_eq!(ledger["follow_ups"], 5);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was left behind");
}
