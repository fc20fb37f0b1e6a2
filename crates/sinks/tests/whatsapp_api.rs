//! The WhatsApp sink against an API that answers, breaks off, lies and never ends.

use std::sync::Arc;
use std::time::Duration;

use postbox_core::outcome::FailureClass::{
    self, Permanent, Rejected, Suspended, Throttled, Transient, Unknown,
};
use postbox_core::outcome::{Confirmation, Failure, Outcome, Scope};
use postbox_core::sink::{Attempt, Sink};
use postbox_sinks::whatsapp::{Egress, WhatsappConfig, WhatsappSink};
use postbox_testkit::receiver::{Answer, Receiver, Script};
use postbox_testkit::sink_conformance::{attempt, event};

const TOKEN: &str = "EAAGtoken";
const SHORT: &str = r#"{"to":"+49 170 1234567","template":"order_shipped","params":["Ann"]}"#;
const ACCEPTED: &str = r#"{"messaging_product":"whatsapp","messages":[{"id":"wamid.HBgL"}]}"#;

/// Short, so that waiting for it costs the test little; how long it takes is asserted nowhere.
const TIMEOUT: Duration = Duration::from_millis(500);

fn config(receiver: &Receiver) -> WhatsappConfig {
    WhatsappConfig {
        base_url: format!("http://{}", receiver.address()),
        ..WhatsappConfig::new("106540352242922", TOKEN)
    }
}

async fn answering(answer: Answer) -> (WhatsappSink, Receiver) {
    let receiver = Receiver::start(Script::always(answer)).await;
    (WhatsappSink::new(config(&receiver)).expect("the receiver's address is one"), receiver)
}

async fn failure(answer: Answer) -> Failure {
    let (sink, receiver) = answering(answer).await;
    let quick = Attempt { timeout: TIMEOUT, ..attempt(event("1", 1, SHORT)) };
    let outcome = sink.deliver(&quick).await;
    assert_eq!(receiver.count(), 1, "one call makes one request");
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?} is no failure"),
    }
}

fn error(status: u16, code: u32) -> Answer {
    let body = format!(
        r#"{{"error":{{"message":"(#{code}) A title","type":"OAuthException","code":{code},"fbtrace_id":"AbC"}}}}"#
    );
    Answer::with_body(status, body)
}

#[track_caller]
fn assert_failure(failure: &Failure, class: FailureClass, hint: &str) {
    assert_eq!(failure.class, class, "{failure:?}");
    assert!(failure.reason.contains(hint), "{failure:?}");
}

#[tokio::test]
async fn a_message_is_one_post_to_the_number_with_the_token_and_its_id_is_kept() {
    let (sink, receiver) = answering(Answer::with_body(200, ACCEPTED)).await;
    let order = event("1", 1, SHORT);
    let third = Attempt { number: 3, ..attempt(Arc::clone(&order)) };
    let external_id = Some("wamid.HBgL".to_owned());
    let delivered = Outcome::Delivered(Confirmation { status: Some(200), external_id });
    assert_eq!(sink.deliver(&third).await, delivered);
    let requests = receiver.requests();
    let [request] = requests.as_slice() else { panic!("one request: {requests:?}") };
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", "/v26.0/106540352242922/messages")
    );
    assert_eq!(request.header("authorization"), Some("Bearer EAAGtoken"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("host").unwrap(), receiver.address().to_string());
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["biz_opaque_callback_data"], format!("pb1.{}.3", order.event_id));
    assert_eq!(body["template"]["components"][0]["parameters"][0]["text"], "Ann");
    assert!(!format!("{sink:?}").contains(TOKEN));
}

#[tokio::test]
async fn a_replay_sends_the_same_message() {
    let (sink, receiver) = answering(Answer::with_body(200, ACCEPTED)).await;
    let order = event("1", 1, SHORT);
    for replay in [false, true] {
        sink.deliver(&Attempt { replay, ..attempt(Arc::clone(&order)) }).await;
    }
    let requests = receiver.requests();
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn codes_decide_over_the_wire() {
    for (status, code, class, scope) in [
        (500, 131_000, Transient, Scope::Lane),
        (400, 4, Throttled, Scope::Account),
        (429, 130_429, Throttled, Scope::Destination),
        (400, 131_056, Throttled, Scope::Lane),
        (400, 131_049, Rejected, Scope::Lane),
        (400, 131_026, Permanent, Scope::Lane),
        (401, 190, Suspended, Scope::Lane),
        (403, 250, Suspended, Scope::Lane),
    ] {
        let failure = failure(error(status, code)).await;
        assert_failure(&failure, class, &format!("error {code} (A title); fbtrace AbC"));
        assert_eq!(failure.scope, scope, "{failure:?}");
    }
}

#[tokio::test]
async fn a_payload_that_cannot_be_sent_is_permanent_and_nothing_leaves() {
    let (sink, receiver) = answering(Answer::with_body(200, ACCEPTED)).await;
    let outcome = sink.deliver(&attempt(event("1", 1, r#"{"to":"+491701234567"}"#))).await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_failure(&failure, Permanent, "the payload's field `template` is missing");
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn an_acceptance_that_cannot_be_read_is_unknown() {
    for answer in [
        Answer::Ok,
        Answer::with_body(200, "thanks"),
        Answer::with_body(200, r#"{"success":true}"#),
        Answer::HalfBody(200),
        Answer::EndlessBody(200),
        Answer::SlowBody(200, Duration::from_millis(20)),
    ] {
        let shown = format!("{answer:?}");
        assert_failure(&failure(answer).await, Unknown, "it may have taken the message");
        assert!(!shown.is_empty());
    }
}

#[tokio::test]
async fn a_body_that_comes_slowly_is_awaited_as_long_as_the_attempt_may_take() {
    let (sink, _receiver) = answering(Answer::DripBody(Duration::from_millis(40), ACCEPTED.into())).await;
    let outcome = sink.deliver(&attempt(event("1", 1, SHORT))).await;
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
}

#[tokio::test]
async fn an_answer_that_never_came_is_unknown() {
    for (answer, hint) in [
        (Answer::Lost, "before an answer came"),
        (Answer::Reset, "before an answer came"),
        (Answer::Silence, "no answer within"),
        (Answer::Garbage, "not HTTP"),
        (Answer::HugeHead(10_000_000), "head is larger"),
        (Answer::EndlessHead, "head is larger"),
        (Answer::EndlessInterim, "no answer within"),
        (Answer::Drip(Duration::from_millis(50)), "no answer within"),
    ] {
        assert_failure(&failure(answer).await, Unknown, hint);
    }
}

#[tokio::test]
async fn what_is_compressed_unasked_is_never_unpacked() {
    let bomb = |status| Answer::With {
        status,
        headers: vec![("content-encoding".to_owned(), "gzip".to_owned())],
        body: b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xed\xc1\x01\r\0\0".repeat(100),
    };
    let accepted = failure(bomb(200)).await;
    assert_failure(&accepted, Unknown, "in an encoding that nobody asked for");
    let refused = failure(bomb(400)).await;
    assert_failure(&refused, Rejected, "answered 400 without an error code");
    assert_eq!((accepted.answer, refused.answer), (None, None));
}

#[tokio::test]
async fn what_is_kept_of_an_answer_repeats_no_number_and_is_bounded() {
    let long = format!(r#"{{"error":{{"code":100,"message":"{} +49 170 1234567"}}}}"#, "x".repeat(10_000));
    let kept = failure(Answer::with_body(400, long)).await.answer.unwrap();
    assert!(kept.len() <= 2_048);
    let short = r#"{"error":{"code":100,"message":"(#100) Param to: 491701234567"}}"#;
    let failure = failure(Answer::with_body(400, short)).await;
    assert!(!format!("{failure:?}").contains("1234567"), "{failure:?}");
}

#[tokio::test]
async fn nobody_listening_or_a_blocked_address_sends_nothing() {
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let sink = WhatsappSink::new(config(&receiver)).unwrap();
    receiver.go_away().await;
    let outcome = sink.deliver(&attempt(event("1", 1, SHORT))).await;
    let Outcome::Failed(refused) = outcome else { panic!("{outcome:?}") };
    assert_failure(&refused, Transient, "connection refused");
    let blocked = WhatsappConfig {
        base_url: "http://localhost:9".to_owned(),
        egress: Egress::public(),
        ..WhatsappConfig::new("1", TOKEN)
    };
    let outcome = WhatsappSink::new(blocked).unwrap().deliver(&attempt(event("1", 1, SHORT))).await;
    let Outcome::Failed(refused) = outcome else { panic!("{outcome:?}") };
    assert_failure(&refused, Permanent, "blocked: localhost resolves to");
}

#[tokio::test]
async fn https_is_spoken_with_an_api_whose_authority_is_trusted() {
    let receiver = Receiver::start_tls(Script::always(Answer::with_body(200, ACCEPTED))).await;
    let config = WhatsappConfig {
        base_url: receiver.url().trim_end_matches("/hooks").to_owned(),
        ca_file: receiver.ca_file().map(std::path::Path::to_path_buf),
        ..WhatsappConfig::new("106540352242922", TOKEN)
    };
    let sink = WhatsappSink::new(config).unwrap();
    for _ in 0..2 {
        let outcome = sink.deliver(&attempt(event("1", 1, SHORT))).await;
        assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    }
    assert_eq!((receiver.count(), receiver.connections()), (2, 1));
}
