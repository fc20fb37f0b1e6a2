//! `postbox whatsapp-webhook`: what Meta reports of a message settles whether it was sent.

use std::io::{Read, Write};
use std::net::TcpStream;

use postbox_fake_whatsapp::{Callback, Mood, Plan, Status, signature};
use postbox_testkit::postgres::PgCluster;
use serde_json::json;
use uuid::Uuid;

use crate::bench::{Bench, Running, eventually};
use crate::talking::Talking;
use crate::whatsapp::{Meta, PHONE, delivery};

const APP_SECRET: &str = "app-secret-hunter2";

/// The webhook as a process, subscribed to the fake API's statuses.
pub(crate) struct Webhook {
    process: Talking,
    address: String,
}

impl Webhook {
    pub(crate) fn start(bench: &Bench, meta: &Meta, more: &[&str]) -> Self {
        let own = ["whatsapp-webhook", "--listen", "127.0.0.1:0", "--verify-token", "env:VERIFY_TOKEN"];
        let mut command = bench.command(&[&own[..], &["--app-secret", "env:APP_SECRET"], more].concat());
        command.env("VERIFY_TOKEN", "verify-hunter2").env("APP_SECRET", APP_SECRET);
        let process = Talking::start(command);
        let first = process.line();
        let address =
            first.trim_start_matches("listening on http://").trim_end_matches("/whatsapp").to_owned();
        let callback = Callback::new(&format!("http://{address}/whatsapp"), APP_SECRET).unwrap();
        let verified = meta.runtime.block_on(callback.verify("verify-hunter2", "1158201444")).unwrap();
        assert_eq!(verified, (200, "1158201444".to_owned()));
        meta.api.set_callback(Some(callback));
        Self { process, address }
    }

    /// Makes a request of its own and gives the answer's status.
    fn ask(&self, request: &str) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn post(&self, path: &str, signed: Option<&str>, body: &str) -> u16 {
        let signature = signed.map_or(String::new(), |tag| format!("x-hub-signature-256: {tag}\r\n"));
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{signature}content-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }
}

/// Writes a message for this customer and tells its event's id.
pub(crate) type Produce<'a> = &'a dyn Fn(&Bench, &str) -> Uuid;

/// Each database, with a way to make a bench on it and one to write messages.
pub(crate) fn each_database(test: impl Fn(&dyn Fn(&Meta, &str) -> Bench, Produce<'_>)) {
    let values = |event_id: Uuid, customer: &str| {
        let payload = json!({ "to": PHONE, "template": "order_shipped" });
        format!(
            "INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
             VALUES ('{event_id}', 'whatsapp/support', '{customer}', 'order.shipped', '{payload}')"
        )
    };
    test(&|meta, more| meta.configure(Bench::migrated(), more), &|bench, customer| {
        let event_id = Uuid::now_v7();
        bench.sqlite().execute(&values(event_id, customer), []).unwrap();
        event_id
    });
    let database = PgCluster::shared().database();
    let made = |meta: &Meta, more: &str| {
        let bench = Bench::on(database.url());
        bench.run(&["migrate"]).succeeded();
        meta.configure(bench, more)
    };
    test(&made, &|_, customer| {
        let event_id = Uuid::now_v7();
        database.sql(&values(event_id, customer));
        event_id
    });
}

fn relay(bench: &Bench) -> Running {
    let relay = bench.start(&["relay"]);
    bench.wait_for_relays(1);
    relay
}

fn wait_for_state(bench: &Bench, event_id: Uuid, state: &str) {
    eventually(|| delivery(bench, event_id)["state"] == state);
}

#[test]
fn a_message_whose_answer_was_lost_is_settled_by_its_status_and_not_sent_again() {
    each_database(|bench, write| {
        let meta = Meta::start(Plan::always(Mood::lose_the_answer()));
        let bench = bench(&meta, "");
        let _webhook = Webhook::start(&bench, &meta, &[]);
        let event_id = write(&bench, "17");
        let _relay = relay(&bench);
        wait_for_state(&bench, event_id, "delivered");
        let phone = meta.api.ledger().phone(PHONE);
        assert_eq!(phone.len(), 1);
        assert_eq!(delivery(&bench, event_id)["external_id"], phone[0].wamid.as_str());
        let told = || {
            let story = bench.run(&["events", "show", &event_id.to_string()]).succeeded();
            ["reported sent", "reported delivered", "reported read"]
                .iter()
                .all(|part| story.out.contains(part))
        };
        eventually(told);
    });
}

/// The relay dies with the request on its way; nobody has the answer, and the next relay has only the row and the status.
#[test]
fn a_relay_killed_before_the_answer_sends_nothing_twice() {
    each_database(|bench, write| {
        let silent = Mood { take: postbox_fake_whatsapp::Take::ThenSilence, ..Mood::accept() };
        let meta = Meta::start(Plan::always(silent));
        meta.api.hold_statuses();
        let bench = bench(&meta, "timeout = \"1s\"");
        let config = std::fs::read_to_string(bench.path("postbox.toml")).unwrap();
        bench.write("postbox.toml", &config.replace("[relay]", "[relay]\nlease_ttl = \"3s\""));
        let event_id = write(&bench, "17");
        let killed = relay(&bench);
        eventually(|| meta.api.ledger().phone(PHONE).len() == 1);
        killed.signal("KILL");
        let doubt = delivery(&bench, event_id);
        assert_eq!(doubt["state"], "retry");
        assert_eq!(doubt["begun"], 1, "{doubt}");
        let story = bench.run(&["events", "show", &event_id.to_string()]).succeeded();
        story.says(&["in doubt: attempt 1 began, and what became of it is not known yet; decided at "]);
        let _webhook = Webhook::start(&bench, &meta, &[]);
        meta.runtime.block_on(meta.api.send_held_statuses());
        wait_for_state(&bench, event_id, "delivered");
        let next = write(&bench, "17");
        meta.api.set_plan(Plan::always(Mood::accept()));
        let _relay = bench.start(&["relay"]);
        wait_for_state(&bench, next, "delivered");
        assert_eq!(meta.api.ledger().copies(PHONE, event_id), 1);
    });
}

#[test]
fn without_evidence_a_message_is_held_until_an_operator_sends_it_again() {
    each_database(|bench, write| {
        let meta = Meta::start(Plan::in_order([Mood::lose_the_answer().in_silence(), Mood::accept()]));
        let bench = bench(&meta, "timeout = \"1s\"\nevidence_wait = \"1500ms\"");
        let (event_id, behind) = (write(&bench, "17"), write(&bench, "17"));
        let _relay = relay(&bench);
        wait_for_state(&bench, event_id, "held");
        let story = bench.run(&["events", "show", &event_id.to_string()]).succeeded();
        story.says(&["held for an operator, 1 attempt; its lane waits (no evidence came that it arrived"]);
        assert_eq!(meta.api.ledger().phone(PHONE).len(), 1, "its lane waits");
        bench.run(&["dead-letters", "replay", &event_id.to_string(), "--yes"]).succeeded();
        wait_for_state(&bench, behind, "delivered");
        assert_eq!(meta.api.ledger().copies(PHONE, event_id), 2);
    });
}

#[test]
fn with_resend_a_message_goes_out_again_when_no_evidence_came() {
    each_database(|bench, write| {
        let meta = Meta::start(Plan::in_order([Mood::lose_the_answer().in_silence(), Mood::accept()]));
        let more = "timeout = \"1s\"\nevidence_wait = \"1500ms\"\nunknown = \"resend\"";
        let bench = bench(&meta, more);
        let event_id = write(&bench, "17");
        let _relay = relay(&bench);
        wait_for_state(&bench, event_id, "delivered");
        assert_eq!(meta.api.ledger().copies(PHONE, event_id), 2);
        assert_eq!(delivery(&bench, event_id)["attempts"], 2);
    });
}

#[test]
fn a_failure_writes_the_event_that_was_asked_for() {
    each_database(|bench, write| {
        let failed =
            Mood::accept().with_statuses([Status::Sent, Status::Failed(131_026), Status::Failed(131_026)]);
        let meta = Meta::start(Plan::always(failed));
        let bench = bench(&meta, "");
        let _webhook = Webhook::start(&bench, &meta, &["--follow-up", "failed"]);
        let event_id = write(&bench, "17");
        let _relay = relay(&bench);
        let list = || bench.run(&["events", "list", "--json"]).succeeded().out;
        eventually(|| list().contains("whatsapp.status.failed"));
        let story = bench.run(&["events", "show", &event_id.to_string(), "--json"]).succeeded().json();
        assert_eq!(story["deliveries"][0]["state"], "delivered", "it was taken, and failed later");
        eventually(|| list().matches("whatsapp.status.failed").count() == 1);
    });
}

#[test]
fn what_is_not_signed_by_meta_is_refused() {
    let meta = Meta::start(Plan::always(Mood::accept()));
    let bench = meta.configure(Bench::migrated(), "");
    let webhook = Webhook::start(&bench, &meta, &[]);
    let body = r#"{"object":"whatsapp_business_account","entry":[]}"#;
    let signed = signature(APP_SECRET, body.as_bytes());
    assert_eq!(webhook.post("/whatsapp", Some(&signed), body), 200);
    assert_eq!(webhook.post("/whatsapp", None, body), 401);
    assert_eq!(webhook.post("/whatsapp", Some(&signature("other", body.as_bytes())), body), 403);
    assert_eq!(webhook.post("/whatsapp", Some(&signed), "{}"), 403, "another body");
    assert_eq!(webhook.post("/", Some(&signed), body), 404);
    let no_call = "not JSON";
    assert_eq!(webhook.post("/whatsapp", Some(&signature(APP_SECRET, no_call.as_bytes())), no_call), 400);
    let get = |query: &str| {
        webhook.ask(&format!("GET /whatsapp{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    };
    assert_eq!(get(""), 400);
    assert_eq!(get("?hub.mode=subscribe&hub.challenge=1&hub.verify_token=wrong"), 403);
    assert_eq!(webhook.ask("DELETE /whatsapp HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"), 405);
    let huge = "POST /whatsapp HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 99999999\r\n\r\n";
    assert_eq!(webhook.ask(huge), 413);
    let lines = webhook.process.interrupt().join("\n");
    assert!(!lines.contains("hunter2"), "{lines}");
}

#[test]
fn what_the_database_cannot_take_in_meta_is_asked_to_repeat() {
    let meta = Meta::start(Plan::always(Mood::accept()));
    let bench = meta.configure(Bench::migrated(), "");
    let webhook = Webhook::start(&bench, &meta, &[]);
    let body = json!({ "entry": [{ "changes": [{ "field": "messages", "value": { "statuses": [
        { "id": "wamid.X", "status": "sent", "timestamp": "1750000000" }
    ] } }] }] })
    .to_string();
    let signed = signature(APP_SECRET, body.as_bytes());
    bench.sqlite().execute_batch("ALTER TABLE outbox_report RENAME TO elsewhere").unwrap();
    assert_eq!(webhook.post("/whatsapp", Some(&signed), &body), 503);
    bench.sqlite().execute_batch("ALTER TABLE elsewhere RENAME TO outbox_report").unwrap();
    assert_eq!(webhook.post("/whatsapp", Some(&signed), &body), 200);
    let recorded: i64 =
        bench.sqlite().query_row("SELECT count(*) FROM outbox_report", [], |row| row.get(0)).unwrap();
    assert_eq!(recorded, 1);
}

#[test]
fn what_cannot_work_is_told_at_the_start() {
    let meta = Meta::start(Plan::always(Mood::accept()));
    let bench = meta.configure(Bench::migrated(), "");
    bench
        .run(&["whatsapp-webhook", "--verify-token", "hunter2", "--app-secret", "env:NOWHERE"])
        .ended_with(2)
        .complains(&["--verify-token says where a secret is kept", "env:NAME or file:PATH"]);
    bench
        .run(&["whatsapp-webhook", "--verify-token", "file:token", "--app-secret", "env:NOWHERE"])
        .ended_with(2)
        .complains(&["--app-secret is missing", "NOWHERE"]);
    bench.write_destination("http://127.0.0.1:9/", "");
    bench
        .run(&["whatsapp-webhook", "--verify-token", "file:token", "--app-secret", "file:token"])
        .ended_with(2)
        .complains(&["no destination of kind \"whatsapp\""]);
}
