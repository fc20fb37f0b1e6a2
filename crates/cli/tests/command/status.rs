//! `postbox status`.

use crate::bench::Bench;
use crate::receiver::Receiver;

#[test]
fn a_fresh_outbox_shows_zeros_and_every_configured_destination() {
    let bench = Bench::migrated();
    bench.write_destination("http://localhost:1/", "");
    let expected = "\
lag         0.0 s
pending     0
in flight   0
struggling  0
dead        0
unrouted    0

DESTINATION  RETRY  WAITING  HELD  DEAD  OLDEST  LAST ERROR
billing      0      0        0     0     -       -
";
    assert_eq!(bench.run(&["status"]).succeeded().out, expected);
}

#[test]
fn lag_above_the_bound_ends_with_1_and_names_the_event() {
    let bench = Bench::migrated();
    let id = bench.produce("42", "order.confirmed");
    bench.run(&["status"]).succeeded().says(&[&id, "No relay is running"]);
    bench.run(&["status", "--max-lag", "1h"]).succeeded();
    bench.run(&["status", "--max-lag", "0s"]).ended_with(1).complains(&["the lag is", "events show", &id]);
    bench.run(&["status", "--max-lag", "soon"]).ended_with(2).complains(&["--max-lag", "not a duration"]);
}

#[test]
fn the_json_has_the_documented_fields() {
    let bench = Bench::migrated();
    bench.write_destination("http://localhost:1/", "");
    let status = bench.run(&["status", "--json"]).succeeded().json();
    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md")).unwrap();
    let fields =
        status.as_object().unwrap().keys().chain(status["destinations"][0].as_object().unwrap().keys());
    for field in fields {
        assert!(documented.contains(&format!("`{field}`")), "{field} is not documented");
    }
    assert_eq!(status["pending"], serde_json::json!({"value": 0, "capped": false}));
}

#[test]
fn unrouted_events_are_shown_with_where_to_look() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let id = bench.produce("42", "invoice.paid");
    bench.run(&["relay", "--once"]).succeeded().says(&["1 unrouted"]);
    bench.run(&["status"]).succeeded().says(&["unrouted    1", "--state unrouted"]);
    bench.run(&["events", "list", "--state", "unrouted"]).succeeded().says(&[&id]);
}
