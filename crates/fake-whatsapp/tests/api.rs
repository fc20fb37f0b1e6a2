//! The fake API as a sender and a callback meet it: the real sink on one side, a recording receiver on the other.
#![expect(clippy::unwrap_used, reason = "a panic is the failing assertion, in what the tests share as well")]

use std::sync::Arc;
use std::time::Duration;

use postbox_core::callback::CallbackMark;
use postbox_core::event::Event;
use postbox_core::outcome::FailureClass::{self, Permanent, Suspended, Transient, Unknown};
use postbox_core::outcome::Outcome;
use postbox_core::sink::{Attempt, Sink as _};
use postbox_fake_whatsapp::{
    Callback, FakeApi, Mood, Plan, SIGNATURE_HEADER, Settings, Status, Take, signature,
};
use postbox_sinks::whatsapp::{WhatsappConfig, WhatsappSink};
use postbox_testkit::receiver::{Answer, Receiver, Script};
use postbox_testkit::sink_conformance::{attempt, event};
use serde_json::Value;

const APP_SECRET: &str = "0123456789abcdef";
const SHORT: &str = r#"{"to":"+49 170 1234567","template":"order_shipped","params":["Ann"]}"#;

struct Scene {
    api: FakeApi,
    sink: WhatsappSink,
    callback: Receiver,
}

async fn scene(plan: Plan) -> Scene {
    let callback = Receiver::start(Script::always(Answer::Ok)).await;
    let url = format!("http://{}/webhooks/whatsapp", callback.address());
    let settings = Settings {
        templates: Some(vec![("order_shipped".to_owned(), 1)]),
        callback: Some(Callback::new(&url, APP_SECRET).unwrap()),
        ..Settings::default()
    };
    let config = WhatsappConfig::new(settings.phone_number_id.clone(), settings.token.clone());
    let api = FakeApi::start(settings, plan).await.unwrap();
    let sink = WhatsappSink::new(WhatsappConfig { base_url: api.base_url(), ..config }).unwrap();
    Scene { api, sink, callback }
}

impl Scene {
    async fn deliver(&self, payload: &str) -> (Arc<Event>, Outcome) {
        let order = event("1", 1, payload);
        let quick = Attempt { timeout: Duration::from_millis(800), ..attempt(Arc::clone(&order)) };
        (order, self.sink.deliver(&quick).await)
    }

    /// The statuses of every call, call by call, each call checked for its signature and its frame.
    fn statuses(&self) -> Vec<Vec<Value>> {
        let calls = self.callback.requests();
        let statuses = calls.iter().map(|call| {
            assert_eq!(call.header(SIGNATURE_HEADER), Some(signature(APP_SECRET, &call.body).as_str()));
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            assert_eq!(body["object"], "whatsapp_business_account");
            let changes = body["entry"].as_array().unwrap().iter().flat_map(|entry| {
                assert_eq!(entry["id"], "102290129340398");
                entry["changes"].as_array().unwrap().clone()
            });
            let statuses = changes.flat_map(|change| {
                assert_eq!(change["field"], "messages");
                assert_eq!(change["value"]["metadata"]["phone_number_id"], "106540352242922");
                change["value"]["statuses"].as_array().unwrap().clone()
            });
            statuses.collect()
        });
        statuses.collect()
    }

    fn words(&self) -> Vec<String> {
        let statuses = self.statuses();
        statuses.iter().flatten().map(|status| status["status"].as_str().unwrap().to_owned()).collect()
    }
}

#[track_caller]
fn assert_failed(outcome: &Outcome, class: FailureClass, hint: &str) {
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.class, class, "{failure:?}");
    assert!(failure.reason.contains(hint), "{failure:?}");
}

#[tokio::test]
async fn what_is_accepted_is_on_the_phone_and_its_statuses_name_the_event() {
    let scene = scene(Plan::always(Mood::accept())).await;
    let (order, outcome) = scene.deliver(SHORT).await;
    let Outcome::Delivered(confirmation) = outcome else { panic!("{outcome:?}") };
    let phone = scene.api.ledger().phone("491701234567");
    let [message] = phone.as_slice() else { panic!("{phone:?}") };
    assert_eq!(Some(&message.wamid), confirmation.external_id.as_ref());
    assert_eq!(message.mark, Some(CallbackMark { event_id: order.event_id, attempt: 1 }));
    scene.api.wait_for_statuses().await;
    assert_eq!(scene.words(), ["sent", "delivered", "read"]);
    for status in scene.statuses().concat() {
        assert_eq!(status["id"], message.wamid);
        assert_eq!(status["recipient_id"], "491701234567");
        assert_eq!(status["biz_opaque_callback_data"], format!("pb1.{}.1", order.event_id));
    }
}

#[tokio::test]
async fn a_lost_answer_leaves_the_message_on_the_phone_and_a_second_one_is_seen() {
    let plan = Plan::in_order([
        Mood::lose_the_answer().with_statuses([Status::Delivered]),
        Mood::accept().in_silence(),
    ]);
    let scene = scene(plan).await;
    let (order, outcome) = scene.deliver(SHORT).await;
    assert_failed(&outcome, Unknown, "before an answer came");
    assert_eq!(scene.api.ledger().copies("491701234567", order.event_id), 1);
    scene.api.wait_for_statuses().await;
    assert_eq!(scene.words(), ["delivered"]);
    let again = Attempt { number: 2, ..attempt(Arc::clone(&order)) };
    assert!(matches!(scene.sink.deliver(&again).await, Outcome::Delivered(_)));
    assert_eq!(scene.api.ledger().copies("491701234567", order.event_id), 2);
    assert_eq!(scene.api.ledger().per_event().len(), 1);
}

#[tokio::test]
async fn silence_and_a_slow_answer_are_unknown_and_the_message_is_taken() {
    let slow = Mood { pause: Duration::from_secs(60), ..Mood::accept() };
    let silent = Mood { take: Take::ThenSilence, ..Mood::accept() };
    let scene = scene(Plan::in_order([slow, silent])).await;
    for taken in 1..=2 {
        let (_, outcome) = scene.deliver(SHORT).await;
        assert_failed(&outcome, Unknown, "no answer within");
        scene.api.ledger().wait_for(taken).await;
    }
}

#[tokio::test]
async fn resets_before_and_after_reading_take_nothing() {
    let scene = scene(Plan::in_order([Mood { take: Take::Reset, ..Mood::accept() }, Mood::accept()])).await;
    scene.api.reset_before_reading(1);
    let (_, outcome) = scene.deliver(SHORT).await;
    assert!(matches!(&outcome, Outcome::Failed(failure) if failure.class == Unknown), "{outcome:?}");
    assert_eq!(scene.api.requests(), 0);
    let (_, outcome) = scene.deliver(SHORT).await;
    assert!(matches!(&outcome, Outcome::Failed(failure) if failure.class == Unknown), "{outcome:?}");
    assert_eq!((scene.api.requests(), scene.api.ledger().messages().len()), (1, 0));
    let (_, outcome) = scene.deliver(SHORT).await;
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
}

#[tokio::test]
async fn errors_come_as_planned() {
    let garbage = Take::Answered(502, "<html>".to_owned());
    let moods = [Mood::refuse(131_026), Mood::refuse(131_000), Mood { take: garbage, ..Mood::accept() }];
    let scene = scene(Plan::in_order(moods)).await;
    assert_failed(&scene.deliver(SHORT).await.1, Permanent, "error 131026 (Message undeliverable)");
    assert_failed(&scene.deliver(SHORT).await.1, Transient, "error 131000 (Something went wrong)");
    assert_failed(&scene.deliver(SHORT).await.1, Unknown, "answered 502 without an error code");
    assert_eq!((scene.api.requests(), scene.api.ledger().messages().len()), (3, 0));
}

#[tokio::test]
async fn requests_are_checked_as_meta_checks_them() {
    let scene = scene(Plan::always(Mood::accept())).await;
    let fine = || WhatsappConfig {
        base_url: scene.api.base_url(),
        ..WhatsappConfig::new(Settings::default().phone_number_id, Settings::default().token)
    };
    for (config, hint) in [
        (
            WhatsappConfig { token: "wrong".into(), ..fine() },
            "answered 401, error 190 (Invalid OAuth access token",
        ),
        (WhatsappConfig { phone_number_id: "1".into(), ..fine() }, "error 100/33 (Unsupported post request"),
    ] {
        let outcome = WhatsappSink::new(config).unwrap().deliver(&attempt(event("1", 1, SHORT))).await;
        assert_failed(&outcome, Suspended, hint);
    }
    for (payload, hint) in [
        (r#"{"to":"491701234567","template":"unknown"}"#, "error 132001"),
        (r#"{"to":"491701234567","template":"order_shipped"}"#, "error 132000"),
    ] {
        assert_failed(&scene.deliver(payload).await.1, Permanent, hint);
    }
    assert!(scene.api.ledger().messages().is_empty());
}

#[tokio::test]
async fn statuses_come_twice_out_of_order_failed_and_before_the_answer() {
    let disorder = [Status::Read, Status::Sent, Status::Sent, Status::Failed(131_049)];
    let mood = Mood { statuses_first: true, ..Mood::accept().with_statuses(disorder) };
    let scene = scene(Plan::always(mood)).await;
    let (_, outcome) = scene.deliver(SHORT).await;
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    assert_eq!(scene.words(), ["read", "sent", "sent", "failed"], "all of them before the answer");
    let failed = &scene.statuses()[3][0];
    assert_eq!(failed["errors"][0]["code"], 131_049);
    assert!(failed.get("pricing").is_none());
}

#[tokio::test]
async fn what_was_held_back_comes_in_one_call_of_several_entries_and_changes() {
    let scene = scene(Plan::always(Mood::accept())).await;
    scene.api.hold_statuses();
    for _ in 0..2 {
        scene.deliver(SHORT).await;
    }
    scene.api.wait_for_statuses().await;
    assert_eq!(scene.callback.count(), 0);
    scene.api.send_held_statuses().await;
    assert_eq!(scene.callback.count(), 1);
    let body: Value = serde_json::from_slice(&scene.callback.requests()[0].body).unwrap();
    let changes: Vec<usize> = body["entry"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["changes"].as_array().unwrap().len())
        .collect();
    assert_eq!(changes, [2, 1]);
    assert_eq!(scene.words().len(), 6);
    scene.deliver(SHORT).await;
    scene.api.wait_for_statuses().await;
    assert_eq!(scene.callback.count(), 4, "nothing is held back any more");
}

#[tokio::test]
async fn a_call_is_repeated_until_it_is_taken() {
    let scene = scene(Plan::always(Mood::accept().with_statuses([Status::Sent]))).await;
    scene.callback.set_script(Script::in_order([Answer::Status(500), Answer::Lost, Answer::Ok]));
    scene.deliver(SHORT).await;
    scene.api.wait_for_statuses().await;
    assert_eq!(scene.words(), ["sent", "sent", "sent"]);
}

#[tokio::test]
async fn a_callback_is_asked_for_its_token_before_it_is_subscribed() {
    let callback = Receiver::start(Script::always(Answer::with_body(200, "1158201444"))).await;
    let url = format!("http://{}/webhooks/whatsapp?a=b", callback.address());
    let (status, body) =
        Callback::new(&url, APP_SECRET).unwrap().verify("open sesame", "1158201444").await.unwrap();
    assert_eq!((status, body.as_str()), (200, "1158201444"));
    let request = callback.requests().remove(0);
    assert_eq!(request.method, "GET");
    assert_eq!(
        request.target,
        "/webhooks/whatsapp?a=b&hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=open%20sesame"
    );
}

#[test]
fn a_callback_is_a_url_on_this_machine() {
    let callback = Callback::new("http://127.0.0.1:8080", APP_SECRET).unwrap();
    assert_eq!((callback.address.as_str(), callback.target.as_str()), ("127.0.0.1:8080", "/"));
    for url in ["https://127.0.0.1:8080/", "127.0.0.1:8080", "http://localhost/", "http://a:1/b c"] {
        assert!(Callback::new(url, APP_SECRET).is_err(), "{url}");
    }
}

#[test]
fn the_signature_is_an_hmac_in_hexadecimal() {
    // RFC 4231, test case 2.
    assert_eq!(
        signature("Jefe", b"what do ya want for nothing?"),
        "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
}
