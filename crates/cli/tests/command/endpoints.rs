//! Endpoints and switches under running relays.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Instant;

use serde_json::Value;

use crate::bench::{Bench, PATIENCE};
use crate::receiver::{Received, Receiver};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1/0MP7gxCbk=";

fn bench() -> Bench {
    let bench = Bench::migrated();
    bench.write_endpoints("");
    bench.write("old", OLD);
    bench.write("new", NEW);
    bench
}

/// Adds an endpoint whose deliveries are tried again at once, again and again.
fn add(bench: &Bench, name: &str, url: &str, more: &[&str]) {
    let eager = ["--attempts", "1000", "--delays", "0s", "--jitter", "0"];
    bench.run(&[&["destinations", "add", name, "--url", url], &eager[..], more].concat()).succeeded();
}

fn event_ids(received: &[Received]) -> Vec<&str> {
    received.iter().map(Received::event_id).collect()
}

fn listed(bench: &Bench, name: &str) -> Value {
    let listed = bench.run(&["destinations", "list", "--json"]).succeeded().json();
    listed["destinations"].as_array().unwrap().iter().find(|found| found["name"] == name).unwrap().clone()
}

/// Waits until the listing of a destination is as wanted.
#[track_caller]
fn wait_until(bench: &Bench, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let found = listed(bench, name);
        if wanted(&found) {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{found}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// The state of each event, oldest first.
fn states(bench: &Bench) -> Vec<String> {
    let events = bench.run(&["events", "list", "--json"]).succeeded().json();
    let events = events["events"].as_array().unwrap();
    events.iter().rev().map(|event| event["state"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn wait_for_states(bench: &Bench, wanted: &[&str]) {
    let began = Instant::now();
    while states(bench) != wanted {
        assert!(began.elapsed() < PATIENCE, "{:?}", states(bench));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_running_relay_sends_to_an_endpoint_that_was_added_and_not_to_one_that_was_removed() {
    let (bench, receiver) = (bench(), Receiver::start());
    let mut relay = bench.start(&["relay"]);
    bench.wait_for_relays(1);
    add(&bench, "acme", &receiver.url(), &["--secret", "file:old", "--event", "order.*"]);
    bench.wait_for_take_over();
    let id = bench.produce("42", "order.confirmed");
    let request = receiver.wait_for(1).remove(0);
    assert_eq!((request.event_id(), request.is_signed_with(OLD)), (id.as_str(), true));
    bench.run(&["destinations", "remove", "acme"]).succeeded();
    bench.produce("42", "order.confirmed");
    wait_for_states(&bench, &["delivered", "unrouted"]);
    relay.signal("TERM");
    assert_eq!(relay.wait(), Some(0));
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn a_disabled_destination_keeps_its_events_and_gets_them_in_order_when_it_is_enabled() {
    let (bench, receiver) = (bench(), Receiver::start());
    let in_file =
        format!("\n[[destination]]\nname = \"billing\"\nkind = \"webhook\"\nurl = \"{}\"\n", receiver.url());
    for (name, configured) in [("acme", ""), ("billing", in_file.as_str())] {
        bench.write_endpoints(configured);
        if configured.is_empty() {
            add(&bench, name, &receiver.url(), &[]);
        }
        let before = receiver.received().len();
        let mut relay = bench.start(&["relay"]);
        bench.wait_for_relays(1);
        let first = bench.produce(name, "order.confirmed");
        receiver.wait_for(before + 1);
        bench.run(&["destinations", "disable", name, "--reason", "paid late"]).succeeded();
        bench.wait_for_take_over();
        let kept: Vec<String> = (0..5).map(|_| bench.produce(name, "order.confirmed")).collect();
        bench.run(&["status"]).succeeded().says(&["BLOCKED", name, "disabled: paid late"]);
        let found = listed(&bench, name);
        assert_eq!((&found["state"], &found["reason"]), (&"disabled".into(), &"paid late".into()));
        assert_eq!(receiver.received().len(), before + 1, "it was disabled");
        bench.run(&["destinations", "enable", name]).succeeded();
        let received = receiver.wait_for(before + 6);
        let expected: Vec<&str> = std::iter::once(&first).chain(&kept).map(String::as_str).collect();
        assert_eq!(event_ids(&received[before..]), expected);
        relay.signal("TERM");
        assert_eq!(relay.wait(), Some(0));
        bench.sqlite().execute_batch("DELETE FROM outbox_destination").unwrap();
    }
}

#[test]
fn during_a_rotation_every_request_verifies_with_both_secrets() {
    let (bench, receiver) = (bench(), Receiver::start());
    let _relay = bench.start(&["relay"]);
    add(&bench, "acme", &receiver.url(), &["--secret", "file:old"]);
    bench.wait_for_take_over();
    bench.produce("42", "order.confirmed");
    receiver.wait_for(1);
    bench
        .run(&["destinations", "rotate-secret", "acme", "--secret", "file:new"])
        .succeeded()
        .says(&["for 1d with the old ones too"]);
    bench.wait_for_take_over();
    bench.produce("42", "order.confirmed");
    receiver.wait_for(2);
    bench.run(&["destinations", "rotate-secret", "acme", "--secret", "file:new", "--keep", "0s"]).succeeded();
    bench.wait_for_take_over();
    bench.produce("42", "order.confirmed");
    let signed: Vec<(bool, bool)> = receiver
        .wait_for(3)
        .iter()
        .map(|request| (request.is_signed_with(OLD), request.is_signed_with(NEW)))
        .collect();
    assert_eq!(signed, [(true, false), (true, true), (false, true)]);
}

#[test]
fn an_endpoint_that_answers_410_is_disabled_and_loses_nothing() {
    let (bench, receiver) = (bench(), Receiver::start());
    let _relay = bench.start(&["relay"]);
    add(&bench, "acme", &receiver.url(), &[]);
    bench.wait_for_take_over();
    receiver.answer(410);
    let ids: Vec<String> = (0..3).map(|_| bench.produce("42", "order.confirmed")).collect();
    let found = wait_until(&bench, "acme", |found| found["state"] == "disabled");
    assert!(found["reason"].as_str().unwrap().contains("410"), "{found}");
    let before = receiver.received().len();
    receiver.answer(200);
    bench.run(&["destinations", "enable", "acme"]).succeeded();
    let received = receiver.wait_for(before + 3);
    assert_eq!(event_ids(&received[before..]), ids);
    wait_for_states(&bench, &["delivered"; 3]);
}

#[test]
fn removing_an_endpoint_with_deliveries_kept_for_it_has_to_be_said() {
    let (bench, receiver) = (bench(), Receiver::start());
    let _relay = bench.start(&["relay"]);
    bench.wait_for_relays(1);
    bench.run(&["destinations", "add", "acme", "--url", &receiver.url(), "--delays", "1h"]).succeeded();
    bench.wait_for_take_over();
    receiver.answer(500);
    for _ in 0..3 {
        bench.produce("42", "order.confirmed");
    }
    wait_until(&bench, "acme", |found| found["struggling"] == 3);
    bench
        .run(&["destinations", "remove", "acme"])
        .ended_with(1)
        .complains(&["3 deliveries are kept for \"acme\"", "--discard"]);
    assert_eq!(listed(&bench, "acme")["state"], "enabled", "nothing was done");
    bench
        .run(&["destinations", "remove", "acme", "--discard"])
        .succeeded()
        .says(&["acme removed, 3 deliveries are discarded"]);
    assert_eq!(states(&bench), ["discarded"; 3]);
    let id =
        bench.run(&["events", "list", "--json"]).json()["events"][0]["event_id"].as_str().unwrap().to_owned();
    bench.run(&["events", "show", &id]).succeeded().says(&["discarded, as the destination was removed"]);
}

#[test]
fn an_endpoint_removed_while_it_is_being_sent_to_leaves_nothing_behind() {
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", slow.local_addr().unwrap());
    let bench = bench();
    let _relay = bench.start(&["relay"]);
    add(&bench, "acme", &url, &["--timeout", "5m"]);
    // The lease of the default configuration is shorter than that attempt.
    wait_until(&bench, "acme", |found| {
        found["reason"].as_str().is_some_and(|reason| reason.contains("lease"))
    });
    bench.run(&["destinations", "update", "acme", "--timeout", "12s"]).succeeded();
    bench.wait_for_take_over();
    for _ in 0..3 {
        bench.produce("42", "order.confirmed");
    }
    let (mut in_flight, _) = slow.accept().unwrap();
    let mut byte = [0];
    in_flight.read_exact(&mut byte).unwrap();
    bench.run(&["destinations", "remove", "acme", "--discard"]).succeeded().says(&["acme removed"]);
    in_flight.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    // The one in flight was confirmed; what waited behind it is given up, and said so.
    wait_for_states(&bench, &["delivered", "discarded", "discarded"]);
    bench.run(&["status"]).succeeded().says(&["struggling  0"]);
}

#[test]
fn an_endpoint_that_cannot_be_used_is_shown_and_delays_no_other() {
    let (bench, receiver) = (bench(), Receiver::start());
    let _relay = bench.start(&["relay"]);
    add(&bench, "fine", &receiver.url(), &[]);
    bench
        .sqlite()
        .execute_batch(
            "INSERT INTO outbox_destination (name, settings) VALUES
                 ('bad-url', '{\"url\": \"nowhere\"}'), ('bad-secret', '{\"url\": \"http://127.0.0.1:9/\"}'),
                 ('inside', '{\"url\": \"https://10.0.0.1/\"}');
             INSERT INTO outbox_destination_secret (destination, secret) VALUES ('bad-secret', 'whsec_hunter2!');",
        )
        .unwrap();
    bench.wait_for_take_over();
    let id = bench.produce("42", "order.confirmed");
    assert_eq!(receiver.wait_for(1)[0].event_id(), id);
    for (name, reason) in [("bad-url", "scheme"), ("bad-secret", "base64"), ("inside", "private address")] {
        let found = wait_until(&bench, name, |found| found["struggling"] == 1);
        let told = found["reason"].as_str().unwrap();
        assert!(told.contains(reason) && told.contains("events are kept"), "{found}");
    }
    let status = bench.run(&["status"]).succeeded().says(&["BLOCKED", "bad-secret", "bad-url", "inside"]);
    assert!(!status.out.contains("hunter2"), "{}", status.out);
    // Mended, it gets what was kept.
    bench.run(&["destinations", "update", "bad-url", "--url", &receiver.url()]).succeeded();
    assert_eq!(event_ids(&receiver.wait_for(2)), [&id, &id]);
}

#[test]
fn the_configuration_wins_over_an_endpoint_of_the_same_name() {
    let (bench, receiver, other) = (bench(), Receiver::start(), Receiver::start());
    add(&bench, "billing", &other.url(), &[]);
    bench.write_endpoints(&format!(
        "\n[[destination]]\nname = \"billing\"\nkind = \"webhook\"\nurl = \"{}\"\n",
        receiver.url()
    ));
    let _relay = bench.start(&["relay"]);
    bench.produce("42", "order.confirmed");
    receiver.wait_for(1);
    bench.wait_for_log("the endpoint of this name is not used");
    bench.run(&["status"]).succeeded().says(&["BLOCKED", "billing", "the endpoint of this name is not used"]);
    assert_eq!(other.received().len(), 0);
}

#[test]
fn endpoints_that_are_switched_off_in_the_configuration_are_left_alone() {
    let (bench, receiver) = (bench(), Receiver::start());
    add(&bench, "acme", &receiver.url(), &[]);
    bench.write("postbox.toml", "[endpoints]\nenabled = false\n");
    bench.run(&["relay", "--once"]).ended_with(2).complains(&["nothing to deliver to"]);
    bench.write("postbox.toml", "[endpoints]\negress = [\"127.0.0.0/8\"]\n");
    bench.produce("42", "order.confirmed");
    bench.run(&["relay", "--once"]).succeeded().says(&["1 delivered"]);
}

#[test]
fn among_ten_thousand_endpoints_an_event_goes_to_its_tenants_alone() {
    let (bench, receiver) = (bench(), Receiver::start());
    let mut few = bench.start(&["relay"]);
    bench.wait_for_relays(1);
    let small = few.memory();
    few.signal("TERM");
    assert_eq!(few.wait(), Some(0));
    let base = receiver.url();
    bench
        .sqlite()
        .execute_batch(&format!(
            "BEGIN;
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
             INSERT INTO outbox_destination (name, settings)
             SELECT 'endpoint-' || i, json_object('url', '{base}/' || i, 'tenant', 't' || i) FROM n;
             INSERT INTO outbox_destination_secret (destination, secret)
             SELECT name, '{OLD}' FROM outbox_destination;
             COMMIT;"
        ))
        .unwrap();
    let relay = bench.start(&["relay"]);
    bench.wait_for_take_over();
    for tenant in ["t4711", "t1", "nobody"] {
        bench
            .sqlite()
            .execute(
                "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers)
                 VALUES ('order', ?1, 'order.confirmed', '{}', json_object('tenant', ?1))",
                [tenant],
            )
            .unwrap();
    }
    wait_for_states(&bench, &["delivered", "delivered", "unrouted"]);
    let mut paths: Vec<String> =
        receiver.received().iter().map(|request| request.path().to_owned()).collect();
    paths.sort();
    assert_eq!(paths, ["/hooks/1", "/hooks/4711"]);
    // 20 KiB for each are more than enough; a set of certificates of its own would take a hundred times that.
    let grown = relay.memory().saturating_sub(small);
    assert!(grown < 10_000 * 20 * 1024, "the relay took {grown} bytes for 10,000 endpoints");
    println!("memory for 10,000 endpoints: {} KiB", grown / 1024);
}
