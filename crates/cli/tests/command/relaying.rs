//! `postbox relay` as a process.

use crate::bench::{Bench, eventually};
use crate::receiver::Receiver;

#[test]
fn once_delivers_everything_in_order_and_ends() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let ids: Vec<String> = (0..20).map(|_| bench.produce("42", "order.confirmed")).collect();
    bench.run(&["relay", "--once"]).succeeded().says(&["20 delivered"]);
    let got: Vec<String> = receiver.received().iter().map(|request| request.event_id().to_owned()).collect();
    assert_eq!(got, ids);
    bench.run(&["status", "--max-lag", "0s"]).succeeded();
}

#[test]
fn once_ends_with_1_when_something_was_not_delivered() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    bench.produce("42", "order.confirmed");
    receiver.answer(503);
    bench
        .run(&["relay", "--once"])
        .ended_with(1)
        .complains(&["not everything was delivered", "postbox status"]);
}

#[test]
fn a_running_relay_picks_up_new_events_and_ends_on_sigterm() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let mut relay = bench.start(&["relay", "--log-format", "json"]);
    for n in 1..=3 {
        let id = bench.produce("42", "order.confirmed");
        assert_eq!(receiver.wait_for(n)[n - 1].event_id(), id);
    }
    bench.run(&["status"]).succeeded().says(&["RELAY", "64"]);
    relay.signal("TERM");
    assert_eq!(relay.wait(), Some(0));
    let log = std::fs::read_to_string(bench.path("stderr.log")).unwrap();
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    assert!(!log.contains("total"), "a payload was logged");
    let status = bench.run(&["status", "--json"]).succeeded().json();
    assert_eq!(status["relays"], serde_json::json!([]), "the lease was not given back");
    assert_eq!(status["pending"]["value"], 0);
}

#[test]
fn request_headers_and_signatures_go_out() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write("signing", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    bench.write("token", "Bearer abc\n");
    bench.write_destination(
        &receiver.url(),
        "secret = { file = \"signing\" }\nrequest_headers = { X-Source = \"shop\", Authorization = { file = \"token\" } }",
    );
    let id = bench.produce("42", "order.confirmed");
    bench.run(&["relay", "--once"]).succeeded();
    let request = &receiver.received()[0];
    assert_eq!(request.header("x-source"), Some("shop"));
    assert_eq!(request.header("authorization"), Some("Bearer abc"));
    assert_eq!(request.header("webhook-id"), Some(id.as_str()));
    assert!(request.header("webhook-signature").unwrap().starts_with("v1,"));
}

#[test]
fn a_second_relay_waits_beside_the_first_and_both_end_cleanly() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let mut first = bench.start(&["relay"]);
    let mut second = bench.start(&["relay"]);
    bench.wait_for_relays(2);
    bench.produce("42", "order.confirmed");
    receiver.wait_for(1);
    for relay in [&mut first, &mut second] {
        relay.signal("INT");
        assert_eq!(relay.wait(), Some(0));
    }
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn a_second_signal_ends_a_relay_that_still_waits_for_an_answer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bench = Bench::migrated();
    bench.write_destination(&format!("http://{}/", silent.local_addr().unwrap()), "");
    bench.produce("42", "order.confirmed");
    let mut relay = bench.start(&["relay"]);
    let _attempt_in_flight = silent.accept().unwrap();
    relay.signal("TERM");
    bench.wait_for_log("a second signal stops at once");
    // The first moments after a signal, another one counts as the same.
    eventually(|| {
        relay.signal("TERM");
        bench.log().contains("stopped at once")
    });
    assert_eq!(relay.wait(), Some(130));
}
