//! `postbox events`.

use crate::bench::Bench;
use crate::receiver::Receiver;

#[test]
fn events_are_listed_newest_first_and_filtered() {
    let bench = Bench::migrated();
    bench.run(&["events", "list"]).succeeded().says(&["no events"]);
    let first = bench.produce("1", "order.confirmed");
    let second = bench.produce("2", "order.cancelled");
    let all = bench.run(&["events", "list", "--json"]).succeeded().json();
    assert_eq!(all["events"][0]["event_id"], second.as_str());
    assert_eq!(all["events"][1]["event_id"], first.as_str());
    assert_eq!(all["next_before"], serde_json::Value::Null);
    for (filter, expected) in [
        (["--type", "order.c*firmed"], Some(&first)),
        (["--aggregate-id", "2"], Some(&second)),
        (["--state", "delivered"], None),
        (["--until", "1h"], None),
        (["--destination", "billing"], None),
    ] {
        let args = [&["events", "list", "--json"], &filter[..]].concat();
        let found = bench.run(&args).succeeded().json();
        let ids: Vec<&str> = found["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["event_id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected.map(String::as_str).into_iter().collect::<Vec<_>>(), "{filter:?}");
    }
    let pending =
        bench.run(&["events", "list", "--state", "pending", "--since", "1h", "--json"]).succeeded().json();
    assert_eq!(pending["events"].as_array().unwrap().len(), 2);
}

#[test]
fn a_long_list_continues_where_it_says() {
    let bench = Bench::migrated();
    for n in 0..5 {
        bench.produce(&n.to_string(), "order.confirmed");
    }
    let mut seen = Vec::new();
    let mut before: Option<String> = None;
    loop {
        let mut args = vec!["events", "list", "--json", "--limit", "2", "--state", "pending"];
        if let Some(before) = &before {
            args.extend(["--before", before]);
        }
        let page = bench.run(&args).succeeded().json();
        seen.extend(page["events"].as_array().unwrap().iter().map(|event| event["id"].as_i64().unwrap()));
        match page["next_before"].as_i64() {
            Some(id) => before = Some(id.to_string()),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|a, b| a > b), "{seen:?}");
}

#[test]
fn the_story_of_an_event_tells_attempts_answers_and_receipts() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let id = bench.produce("42", "order.confirmed");
    bench.run(&["events", "show", &id]).succeeded().says(&[
        "order.confirmed",
        "order 42",
        "on the to-do list",
    ]);
    receiver.answer(503);
    bench.exhaust_retries();
    let story = bench.run(&["events", "show", &id]).succeeded();
    let story = story.says(&["dead letter after 2 attempts", "attempt 1", "attempt 2", "503", "noted"]);
    assert!(!story.out.contains("total"), "the payload was shown unasked");
    receiver.answer(200);
    bench.run(&["dead-letters", "replay", &id]).succeeded();
    bench.run(&["relay", "--once"]).succeeded();
    bench.run(&["events", "show", &id, "--payload"]).succeeded().says(&[
        "-> billing: delivered at",
        "answered 200",
        "1 attempt",
        "replayed 1 time",
        "{\"total\": 12}",
    ]);
    let json = bench.run(&["events", "show", &id, "--json"]).succeeded().json();
    assert_eq!(json["state"], "delivered");
    assert_eq!(json["deliveries"][0]["history"].as_array().unwrap().len(), 2);
}

#[test]
fn an_event_that_does_not_exist_is_said_to() {
    let bench = Bench::migrated();
    let id = "0190f2a4-6c3e-7b1a-8c2d-000000000001";
    bench.run(&["events", "show", id]).ended_with(1).complains(&["there is no event", id, "pruned"]);
    bench.run(&["events", "show", "42"]).ended_with(2).complains(&["invalid value '42'"]);
}
