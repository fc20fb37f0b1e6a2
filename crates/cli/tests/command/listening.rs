//! `postbox listen` as a process, with a real relay or a bare connection as its client.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::talking::Talking;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A listener that runs.
struct Listening {
    listener: Talking,
    url: String,
}

impl Listening {
    fn start(bench: &Bench, args: &[&str]) -> Self {
        let mut command = bench.command(&[&["listen", "--port", "0"], args].concat());
        command.env("SIGNING", SECRET);
        let listener = Talking::start(command);
        let first = listener.line();
        let (_, rest) = first.split_once("http://").unwrap_or_else(|| panic!("no URL in {first:?}"));
        let url = format!("http://{}", rest.split(['"', ' ']).next().unwrap());
        Self { listener, url }
    }

    #[track_caller]
    fn line(&self) -> String {
        self.listener.line()
    }

    #[track_caller]
    fn json(&self) -> Value {
        self.listener.json()
    }

    fn interrupt(self) -> Vec<String> {
        self.listener.interrupt()
    }

    /// Posts an event of order 42 and gives the whole answer.
    fn post(&self, id: &str, sequence: u64) -> String {
        let body = r#"{"type":"order.confirmed","aggregate_type":"order","aggregate_id":"42"}"#;
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx-idempotency-key: {id}\r\n\
             x-event-sequence: {sequence}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

fn signed(bench: &Bench, listening: &Listening, more: &str) {
    bench.write("signing", SECRET);
    bench.write_destination(&listening.url, &format!("secret = {{ file = \"signing\" }}\n{more}"));
}

#[test]
fn each_delivery_is_a_line_and_ctrl_c_sums_up() {
    let bench = Bench::migrated();
    let listening = Listening::start(&bench, &["--secret", "env:SIGNING"]);
    signed(&bench, &listening, "");
    for event_type in ["order.confirmed", "order.shipped"] {
        bench.produce("42", event_type);
    }
    bench.run(&["relay", "--once"]).succeeded();
    for (event_type, sequence) in [("order.confirmed", 1), ("order.shipped", 2)] {
        let line = listening.line();
        let expected = format!("  200  {event_type}  order/42 #{sequence}  attempt 1  verified");
        assert!(line.ends_with(&expected), "{line}");
    }
    let summary = listening.interrupt().join("\n");
    assert!(summary.contains("requests: 2, events accepted: 2, duplicates: 0, out of order: 0"), "{summary}");
    assert!(summary.contains("answered: 2 × 200"), "{summary}");
}

#[test]
fn every_envelope_is_told_alike() {
    let bench = Bench::migrated();
    let listening = Listening::start(&bench, &["--json", "--secret", "env:SIGNING"]);
    for (n, envelope) in (1..).zip(["json", "cloudevents-binary", "cloudevents-structured"]) {
        signed(&bench, &listening, &format!("envelope = \"{envelope}\""));
        let id = bench.produce("42", "order.confirmed");
        bench.run(&["relay", "--once"]).succeeded();
        let line = listening.json();
        assert_eq!(
            [
                &line["event_id"],
                &line["type"],
                &line["aggregate_type"],
                &line["aggregate_id"],
                &line["sequence"]
            ],
            [&json!(id), &json!("order.confirmed"), &json!("order"), &json!("42"), &json!(n)],
            "{envelope}"
        );
        assert_eq!((&line["verified"], &line["out_of_order"]), (&json!(true), &json!(false)), "{envelope}");
    }
}

#[test]
fn the_first_requests_fail_as_asked_and_the_retry_is_told_as_such() {
    let bench = Bench::migrated();
    let listening =
        Listening::start(&bench, &["--json", "--fail-first", "1", "--answer", "500", "--delay", "1ms"]);
    bench.write_destination(&listening.url, "");
    bench.produce("42", "order.confirmed");
    bench.run(&["relay", "--once"]);
    bench.run(&["relay", "--once"]);
    for (attempt, status) in [(1, 500), (2, 200)] {
        let line = listening.json();
        assert_eq!((&line["attempt"], &line["status"]), (&json!(attempt), &json!(status)), "{line}");
        assert_eq!((&line["duplicate"], &line["verified"]), (&json!(false), &Value::Null), "{line}");
        assert!(line.get("body").is_none(), "{line}");
    }
    let summary: Value = serde_json::from_str(&listening.interrupt()[0]).unwrap();
    assert_eq!(summary["summary"]["statuses"], json!({ "200": 1, "500": 1 }));
    assert_eq!(summary["summary"]["accepted"], 1);
}

#[test]
fn a_request_that_is_not_signed_by_the_secret_is_refused_with_401() {
    let bench = Bench::migrated();
    bench.write("other", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1/0MP7gxCbk=");
    let listening = Listening::start(&bench, &["--secret", "file:other"]);
    signed(&bench, &listening, "");
    bench.produce("42", "order.confirmed");
    bench.run(&["relay", "--once"]).ended_with(1);
    let line = listening.line();
    assert!(line.contains("  401  ") && line.contains("NOT VERIFIED: no signature fits"), "{line}");
}

#[test]
fn no_answer_at_all_costs_the_sender_its_time() {
    let bench = Bench::migrated();
    let listening = Listening::start(&bench, &["--json", "--hang"]);
    bench.write_destination(&listening.url, "timeout = \"1s\"");
    bench.produce("42", "order.confirmed");
    bench.run(&["relay", "--once"]).ended_with(1);
    assert_eq!(listening.json()["status"], Value::Null);
}

#[test]
fn duplicates_and_what_comes_out_of_order_are_marked() {
    let bench = Bench::empty();
    let listening = Listening::start(&bench, &[]);
    for (id, sequence, mark) in [
        ("a", 1, "#1"),
        ("a", 1, "DUPLICATE"),
        ("c", 3, "OUT OF ORDER: #2 is missing"),
        ("b", 2, "OUT OF ORDER: after #3"),
    ] {
        assert!(listening.post(id, sequence).starts_with("HTTP/1.1 200"));
        let line = listening.line();
        assert!(line.ends_with(mark), "{line}");
    }
}

#[test]
fn failures_can_ask_to_wait_and_bodies_are_shown_on_request() {
    let bench = Bench::empty();
    let args = ["--show-body", "--fail-rate", "1", "--answer", "429", "--retry-after", "90s"];
    let listening = Listening::start(&bench, &args);
    let answer = listening.post("a", 1);
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("retry-after: 90\r\n"), "{answer}");
    assert!(listening.line().contains("  429  order.confirmed"));
    assert!(listening.line().contains(r#""aggregate_id":"42""#));
}

#[test]
fn what_carries_no_event_is_told_and_counted() {
    let bench = Bench::empty();
    let listening = Listening::start(&bench, &[]);
    assert!(listening.post("", 1).starts_with("HTTP/1.1 400"), "an empty id is none");
    assert!(listening.line().contains("no event"));
    let address = listening.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(listening.line().contains("no event"));
    assert!(listening.interrupt().join("\n").contains("without an event: 2"));
}

#[test]
fn what_cannot_be_meant_is_refused_and_no_secret_repeated() {
    let bench = Bench::empty();
    for (args, hint) in [
        (&["--secret", SECRET][..], "env:NAME or file:PATH"),
        (&["--secret", "env:NOWHERE"], "NOWHERE is not set"),
        (&["--secret", "whpk_c2hvcnQ="], "holds 5 bytes"),
        (&["--answer", "99"], "200 to 599"),
        (&["--fail-rate", "2"], "from 0 to 1"),
        (&["--hang", "--answer", "500"], "cannot be used with"),
        (&["--fail-first", "1", "--fail-rate", "0.5"], "cannot be used with"),
    ] {
        let ended = bench.run(&[&["listen"], args].concat()).ended_with(2).complains(&[hint]);
        assert!(!ended.err.contains(SECRET), "{}", ended.err);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    bench.run(&["listen", "--port", &port]).ended_with(2).complains(&["cannot be used", "--port"]);
}
