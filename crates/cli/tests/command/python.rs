//! What the relay sends is accepted by a receiver in Python that verifies with the public package `standardwebhooks`.

use std::process::Command;

use serde_json::Value;

use crate::bench::Bench;
use crate::talking::Talking;

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1/0MP7gxCbk=";

/// A receiver that runs.
struct PythonReceiver {
    program: Talking,
    url: String,
}

impl PythonReceiver {
    fn with(secret: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/receiver.py");
        let mut command = Command::new(postbox_testkit::python::interpreter());
        command.args([script, secret]);
        let program = Talking::start(command);
        let url = format!("http://127.0.0.1:{}/hooks", program.line());
        Self { program, url }
    }
}

/// A directory with both secrets in files.
fn bench() -> Bench {
    let bench = Bench::migrated();
    bench.write("old", OLD);
    bench.write("new", NEW);
    bench
}

/// Sends one event signed by `secrets` and gives what the receiver made of it.
fn send(bench: &Bench, receiver: &PythonReceiver, secrets: &str) -> Value {
    bench.write_destination(&receiver.url, &format!("secret = {secrets}"));
    let id = bench.produce("42", "order.confirmed");
    bench.run(&["relay", "--once"]);
    let verdict = receiver.program.json();
    if verdict["verified"] == true {
        assert_eq!(verdict["event"]["event_id"], id.as_str());
        assert_eq!(verdict["event"]["data"]["total"], 12);
    }
    verdict
}

#[test]
fn a_receiver_with_the_public_package_verifies_through_a_whole_rotation() {
    let bench = bench();
    let (has_old, has_new) = (PythonReceiver::with(OLD), PythonReceiver::with(NEW));
    let both = "[{ file = \"new\" }, { file = \"old\", until = \"2999-01-01T00:00:00Z\" }]";
    for (secrets, receiver) in [
        ("{ file = \"old\" }", &has_old),
        (both, &has_old),
        (both, &has_new),
        ("{ file = \"new\" }", &has_new),
    ] {
        let verdict = send(&bench, receiver, secrets);
        assert_eq!(verdict["verified"], true, "{secrets}: {verdict}");
    }
}

#[test]
fn a_receiver_with_the_public_package_refuses_what_another_secret_signed() {
    let bench = bench();
    let has_old = PythonReceiver::with(OLD);
    let expired = "[{ file = \"new\" }, { file = \"old\", until = \"2020-01-01T00:00:00Z\" }]";
    let verdict = send(&bench, &has_old, expired);
    assert_eq!(verdict["problem"], "No matching signature found", "{verdict}");
}
