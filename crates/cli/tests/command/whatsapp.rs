//! `kind = "whatsapp"`: an event becomes a message on a phone, and mistakes in the block are told.

use postbox_fake_whatsapp::{FakeApi, Mood, Plan, Settings};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::bench::{Bench, Ended};

pub(crate) const PHONE: &str = "491701234567";

/// The API, with threads of its own that serve while commands run.
pub(crate) struct Meta {
    pub(crate) api: FakeApi,
    pub(crate) runtime: Runtime,
}

impl Meta {
    pub(crate) fn start(plan: Plan) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let api = runtime.block_on(FakeApi::start(Settings::default(), plan)).unwrap();
        Self { api, runtime }
    }

    /// A bench whose relay sends to this API.
    fn bench(&self, more: &str) -> Bench {
        self.configure(Bench::migrated(), more)
    }

    /// Makes this API the destination `support`.
    pub(crate) fn configure(&self, bench: Bench, more: &str) -> Bench {
        bench.write("token", &format!("{}\n", Settings::default().token));
        bench.write("postbox.toml", &block(&format!("base_url = \"{}\"\n{more}", self.api.base_url())));
        bench
    }
}

fn block(more: &str) -> String {
    format!(
        "[relay]\npoll_interval = \"20ms\"\n\n[[destination]]\nname = \"support\"\nkind = \"whatsapp\"\n\
         phone_number_id = \"106540352242922\"\ntoken = {{ file = \"token\" }}\n{more}\n"
    )
}

/// Writes a message for the number `support` and tells its event's id.
fn write_message(bench: &Bench, customer: &str, payload: &Value) -> uuid::Uuid {
    let event_id = uuid::Uuid::now_v7();
    let insert = "INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
                  VALUES (?1, 'whatsapp/support', ?2, 'order.shipped', ?3)";
    bench.sqlite().execute(insert, [&event_id.to_string(), customer, &payload.to_string()]).unwrap();
    event_id
}

pub(crate) fn delivery(bench: &Bench, event_id: uuid::Uuid) -> Value {
    let shown = bench.run(&["events", "show", &event_id.to_string(), "--json"]).succeeded().json();
    shown["deliveries"][0].clone()
}

#[test]
fn an_event_becomes_a_message_and_its_id_is_in_the_receipt() {
    let meta = Meta::start(Plan::always(Mood::accept()));
    let bench = meta.bench("language = \"de\"");
    let short = json!({"to": "+49 170 1234567", "template": "order_shipped", "params": ["Ann"]});
    let exact =
        json!({"messaging_product": "whatsapp", "to": PHONE, "type": "text", "text": {"body": "hello"}});
    let events = [write_message(&bench, "17", &short), write_message(&bench, "17", &exact)];
    bench.run(&["relay", "--once"]).succeeded().says(&["2 delivered"]);
    let phone = meta.api.ledger().phone(PHONE);
    assert_eq!(phone.len(), 2);
    for (message, event_id) in phone.iter().zip(events) {
        assert_eq!(message.mark.map(|mark| (mark.event_id, mark.attempt)), Some((event_id, 1)));
        let receipt = delivery(&bench, event_id);
        assert_eq!((&receipt["state"], &receipt["destination"]), (&json!("delivered"), &json!("support")));
        assert_eq!((&receipt["status"], &receipt["external_id"]), (&json!(200), &json!(message.wamid)));
    }
    assert_eq!(phone[0].body["template"]["language"]["code"], "de");
    let mut sent = phone[1].body.clone();
    sent.as_object_mut().unwrap().remove("biz_opaque_callback_data");
    assert_eq!(sent, exact);
}

#[test]
fn what_meta_refuses_for_good_is_a_dead_letter_and_the_lane_goes_on() {
    let meta = Meta::start(Plan::in_order([Mood::refuse(131_026), Mood::accept()]));
    let bench = meta.bench("");
    let payload = json!({"to": PHONE, "template": "order_shipped"});
    let (refused, taken) = (write_message(&bench, "17", &payload), write_message(&bench, "17", &payload));
    let ended = bench.run(&["relay", "--once"]).ended_with(1).says(&["1 delivered", "1 dead"]);
    assert!(!format!("{}{}", ended.out, ended.err).contains("1234567"), "a number was logged");
    assert_eq!(delivery(&bench, refused)["state"], "dead");
    assert!(delivery(&bench, refused)["last_error"].as_str().unwrap().contains("131026"));
    assert_eq!(delivery(&bench, taken)["state"], "delivered");
}

#[test]
fn a_payload_that_is_no_message_is_a_dead_letter_that_names_the_field() {
    let meta = Meta::start(Plan::always(Mood::accept()));
    let bench = meta.bench("");
    let event_id = write_message(&bench, "17", &json!({"to": "0170 1234567", "template": "order_shipped"}));
    let ended = bench.run(&["relay", "--once"]).ended_with(1);
    assert!(!ended.err.contains("1234567"), "{}", ended.err);
    let error = delivery(&bench, event_id)["last_error"].as_str().unwrap().to_owned();
    assert!(error.contains("field `to`") && !error.contains("1234567"), "{error}");
    assert_eq!(meta.api.requests(), 0);
}

#[test]
fn each_mistake_in_the_block_is_told_with_what_to_write() {
    let bench = Bench::on("sqlite:shop.db");
    for (text, parts) in [
        (block("url = \"https://x.example/\""), &["unknown key `url`"][..]),
        (block("classes = { \"404\" = \"rejected\" }"), &["unknown key `classes`"]),
        (
            block("").replace("phone_number_id = \"106540352242922\"\n", ""),
            &["has no `phone_number_id`", "106540352242922"],
        ),
        (
            block("").replace("\"106540352242922\"", "\"+49 170\""),
            &["this `phone_number_id` cannot be used", "digits"],
        ),
        (
            block("").replace("\"106540352242922\"", "106540352242922"),
            &["`phone_number_id` must be a text in quotes"],
        ),
        (block("").replace("token = { file = \"token\" }\n", ""), &["has no `token`", "WHATSAPP_TOKEN"]),
        (
            block("").replace("{ file = \"token\" }", "\"EAAGhunter2\""),
            &["`token` must say where the secret is kept"],
        ),
        (block("version = \"26\""), &["this `version` cannot be used", "v26.0"]),
        (block("base_url = \"http://graph.example\""), &["this `base_url` cannot be used", "`allow_http`"]),
        (block("base_url = \"graph.example\""), &["this `base_url` cannot be used", "no scheme"]),
        (block("language = \"English!\""), &["this `language` cannot be used", "en_US"]),
        (block("account = \"\""), &["this `account` cannot be used"]),
        (block("unknown = \"drop\""), &["`unknown` cannot be \"drop\"", "hold, resend"]),
        (block("evidence_wait = \"10s\""), &["evidence_wait = 10s is not longer than timeout = 10s"]),
        (block("evidence_wait = \"0s\""), &["`evidence_wait` must be 1s to 7d"]),
        (block("events = [\"order.*\"]"), &["unknown key `events`"]),
        (block("lane_rate_limit = { per = \"6s\" }"), &["has no `count`", "lane_rate_limit = {"]),
        (block("lane_rate_limit = { count = 0 }"), &["`count` must be 1 to"]),
        (block("headers = { a = \"b\" }"), &["unknown key `headers`"]),
    ] {
        bench.write("postbox.toml", &text);
        let ended = bench.run(&["status"]).ended_with(2).complains(parts).complains(&["nothing was started"]);
        assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    }
}

#[test]
fn a_token_is_checked_before_the_relay_starts_and_never_shown() {
    let bench = Bench::migrated();
    bench.write("postbox.toml", &block(""));
    bench.run(&["status"]).succeeded();
    bench
        .run(&["relay", "--once"])
        .ended_with(2)
        .complains(&["access token of \"support\" is missing", "file token"]);
    bench.write("token", "EAAG hunter2");
    let ended = bench.run(&["relay", "--once"]).ended_with(2);
    let ended = ended.complains(&["access token of \"support\" cannot be used", "white space"]);
    assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    bench.write("token", "EAAGhunter2\n");
    let mut command = bench.command(&["relay", "--once"]);
    command.env("RUST_LOG", "trace");
    let ended = Ended::of(command).succeeded();
    assert!(!ended.err.contains("hunter2"), "{}", ended.err);
}

#[test]
fn a_number_is_listed_and_gets_no_test_event() {
    let bench = Bench::migrated();
    bench.write("postbox.toml", &block(""));
    let list = bench.run(&["destinations", "list"]).succeeded();
    list.says(&["support", "graph.facebook.com/v26.0/106540352242922/messages"]);
    bench
        .run(&["destinations", "test", "support"])
        .ended_with(2)
        .complains(&["sends to people", "docs/whatsapp.md"]);
}
