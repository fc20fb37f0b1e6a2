//! The receiver as a process of its own leaves a record that outlives it.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use postbox_testkit::ledger::{self, Ledger};
use uuid::Uuid;

struct Receiver {
    process: Child,
    address: String,
}

impl Receiver {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_postbox-testkit-receiver"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the receiver can be started");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it tells its URL");
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.split('/').next());
        Self { address: address.expect("an http URL").to_owned(), process }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Posts one event and gives the answer's status, or `None` when the connection was closed without one.
fn post(stream: &mut TcpStream, event: Uuid, sequence: i64) -> Option<u16> {
    let body = r#"{"aggregate_type":"order","aggregate_id":"1"}"#;
    write!(
        stream,
        "POST /hooks HTTP/1.1\r\nX-Idempotency-Key: {event}\r\nX-Event-Sequence: {sequence}\r\n\
         Postbox-Attempt: 1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("the receiver reads");
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => answer.push(byte[0]),
            _ => return None,
        }
    }
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

#[test]
fn the_record_of_a_killed_receiver_holds_every_request_it_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.jsonl");
    let mut receiver = Receiver::start(&["--record", path.to_str().unwrap(), "--delay-ms", "1"]);
    let mut stream = TcpStream::connect(&receiver.address).unwrap();
    let events: Vec<Uuid> = (0..5).map(|_| Uuid::now_v7()).collect();
    for (sequence, event) in (1..).zip(&events) {
        assert_eq!(post(&mut stream, *event, sequence), Some(200));
    }
    receiver.process.kill().unwrap();
    receiver.process.wait().unwrap();

    let entries = ledger::read(&path).unwrap();
    let committed: HashSet<Uuid> = events.iter().copied().collect();
    let ledger = Ledger::of(&entries, &committed, &HashSet::new());
    assert!(ledger.adds_up(), "{ledger:?}");
    assert_eq!((ledger.requests, ledger.delivered, ledger.repeated), (5, 5, 0));
}

#[test]
fn failures_fall_as_the_seed_says() {
    let run = || -> Vec<Option<u16>> {
        let receiver = Receiver::start(&["--fail", "30", "--lose", "20", "--seed", "7"]);
        (1..=40)
            .map(|sequence| {
                let mut stream = TcpStream::connect(&receiver.address).expect("the receiver listens");
                post(&mut stream, Uuid::now_v7(), sequence)
            })
            .collect()
    };
    let answers = run();
    assert_eq!(answers, run());
    for answer in [Some(200), Some(503), None] {
        assert!(answers.contains(&answer), "{answer:?} never came: {answers:?}");
    }
}

#[test]
fn it_ends_when_nobody_needs_it_any_more() {
    let mut receiver = Receiver::start(&[]);
    drop(receiver.process.stdin.take());
    assert!(receiver.process.wait().unwrap().success());
}

#[test]
fn an_unknown_argument_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_postbox-testkit-receiver"))
        .args(["--fail", "200"])
        .output()
        .expect("the receiver can be started");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--fail 200 is no percentage"));
}
