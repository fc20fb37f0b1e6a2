//! `postbox dead-letters` and `postbox replay`.

use crate::bench::{Bench, eventually};
use crate::receiver::Receiver;

/// Two dead letters, of the orders 1 and 2, and a receiver that has recovered.
fn with_dead_letters(more: &str) -> (Bench, Receiver, [String; 2]) {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), more);
    let ids = [bench.produce("1", "order.confirmed"), bench.produce("2", "order.cancelled")];
    receiver.answer(503);
    bench.exhaust_retries();
    receiver.answer(200);
    assert_eq!(receiver.received().len(), 4, "two attempts each");
    (bench, receiver, ids)
}

#[test]
fn dead_letters_are_listed_shown_and_sent_again() {
    let (bench, receiver, [first, second]) = with_dead_letters("");
    bench.run(&["dead-letters", "list"]).succeeded().says(&[
        &first,
        &second,
        "billing",
        "dead",
        "order 1 #1",
    ]);
    bench.run(&["dead-letters", "list", "--type", "*.cancelled", "--json"]).succeeded().says(&[&second]);
    bench.run(&["dead-letters", "show", &first]).succeeded().says(&["dead letter after 2 attempts", "503"]);
    bench
        .run(&["dead-letters", "replay", "--aggregate-id", "1", "--dry-run"])
        .succeeded()
        .says(&["1 delivery would"]);
    bench.run(&["dead-letters", "replay", "--aggregate-id", "1"]).succeeded().says(&["1 delivery put back"]);
    bench.run(&["relay", "--once"]).succeeded().says(&["1 delivered"]);
    let repeated = receiver.received().pop().unwrap();
    assert_eq!(repeated.event_id(), first);
    assert_eq!(repeated.header("postbox-replay"), Some("true"));
    let left = bench.run(&["dead-letters", "list", "--json"]).succeeded().json();
    assert_eq!(left["dead_letters"].as_array().unwrap().len(), 1);
    assert_eq!(left["dead_letters"][0]["event_id"], second.as_str());
    bench
        .run(&["dead-letters", "show", &first])
        .ended_with(1)
        .complains(&["no dead or held delivery", "events show"]);
}

#[test]
fn discarded_letters_are_gone_from_the_list_and_told_in_the_story() {
    let (bench, receiver, [first, second]) = with_dead_letters("");
    bench.run(&["dead-letters", "discard", &first, &second]).succeeded().says(&["2 deliveries discarded"]);
    bench.run(&["dead-letters", "list"]).succeeded().says(&["no dead letters"]);
    bench.run(&["events", "show", &first]).succeeded().says(&["discarded by an operator"]);
    bench.run(&["dead-letters", "replay", "--all"]).succeeded().says(&["nothing matches"]);
    bench.run(&["replay", "--state", "discarded", &first]).succeeded().says(&["1 delivery put back"]);
    bench.run(&["relay", "--once"]).succeeded();
    assert_eq!(receiver.received().pop().unwrap().event_id(), first);
}

#[test]
fn a_held_lane_waits_for_the_operator_and_then_goes_on_in_order() {
    let (bench, receiver, [first, _]) = with_dead_letters("on_exhausted = \"hold_lane\"");
    let later = bench.produce("1", "order.shipped");
    bench.run(&["relay", "--once"]);
    assert_eq!(receiver.received().len(), 4, "the lane did not wait");
    bench.run(&["dead-letters", "list", "--state", "held"]).succeeded().says(&[&first, "held"]);
    bench
        .run(&["dead-letters", "replay", "--all", "--state", "held"])
        .succeeded()
        .says(&["2 deliveries put back"]);
    bench.run(&["relay", "--once"]).succeeded();
    let order_1: Vec<String> = receiver.received()[4..]
        .iter()
        .filter(|request| request.body["aggregate_id"] == "1")
        .map(|request| request.event_id().to_owned())
        .collect();
    assert_eq!(order_1, [first, later]);
}

#[test]
fn what_was_delivered_can_be_sent_again() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let ids: Vec<String> = (0..3).map(|_| bench.produce("42", "order.confirmed")).collect();
    bench.run(&["relay", "--once"]).succeeded();
    bench
        .run(&["replay", "--destination", "billing", "--dry-run"])
        .succeeded()
        .says(&["3 deliveries would be sent again"]);
    assert_eq!(receiver.received().len(), 3);
    bench.run(&["replay", "--destination", "nobody"]).succeeded().says(&["nothing matches"]);
    bench
        .run(&["replay", "--aggregate-type", "order", "--since", "1h", "--yes"])
        .succeeded()
        .says(&["3 deliveries"]);
    bench.run(&["relay", "--once"]).succeeded();
    let again = receiver.received().split_off(3);
    assert_eq!(again.iter().map(|request| request.event_id().to_owned()).collect::<Vec<_>>(), ids);
    assert!(again.iter().all(|request| request.header("postbox-replay") == Some("true")));
}

#[test]
fn an_interrupted_replay_is_continued_without_sending_anything_a_third_time() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let ids: Vec<String> = (0..5).map(|n| bench.produce(&n.to_string(), "order.confirmed")).collect();
    bench.run(&["relay", "--once"]).succeeded().says(&["5 delivered"]);
    let mut replay = bench.start(&["replay", "--all", "--rate", "1"]);
    let put_back = || {
        let status = bench.run(&["status", "--json"]).succeeded().json();
        status["struggling"]["value"].as_u64().unwrap()
    };
    eventually(|| put_back() > 0);
    replay.signal("KILL");
    replay.wait();
    let log = bench.log();
    let before = log.split_once("--sent-before ").unwrap().1.trim();
    let first = put_back();
    assert!(first < 5, "the replay was over before it could be interrupted");
    bench.run(&["relay", "--once"]).succeeded().says(&[&format!("{first} delivered")]);
    let left = format!("{} deliver", 5 - first);
    bench.run(&["replay", "--all", "--sent-before", before]).succeeded().says(&[&left]);
    bench.run(&["relay", "--once"]).succeeded().says(&[&left]);
    for id in ids {
        assert_eq!(receiver.received().iter().filter(|request| request.event_id() == id).count(), 2);
    }
}

#[test]
fn what_no_route_matched_is_routed_by_a_replay_once_there_is_one() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let id = bench.produce("1", "invoice.paid");
    bench.run(&["relay", "--once"]).succeeded().says(&["1 unrouted"]);
    bench.write_destination(&receiver.url(), "aggregate_types = [\"order\"]");
    let config = std::fs::read_to_string(bench.path("postbox.toml")).unwrap();
    std::fs::write(bench.path("postbox.toml"), config.replace("order.*", "*")).unwrap();
    bench.run(&["replay", "--all", "--state", "unrouted"]).succeeded().says(&["1 delivery put back"]);
    bench.run(&["relay", "--once"]).succeeded().says(&["1 delivered"]);
    assert_eq!(receiver.received()[0].event_id(), id);
}

#[test]
fn unrouted_events_can_be_let_go() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let config = std::fs::read_to_string(bench.path("postbox.toml")).unwrap();
    let config = config.replace("[relay]", "[relay]\nunrouted = \"skip\"");
    std::fs::write(bench.path("postbox.toml"), config).unwrap();
    bench.produce("1", "invoice.paid");
    bench.run(&["relay", "--once"]).succeeded().says(&["1 without a destination skipped"]);
    let status = bench.run(&["status", "--json"]).succeeded().json();
    assert_eq!((&status["pending"]["value"], &status["unrouted"]["value"]), (&0.into(), &0.into()));
}
