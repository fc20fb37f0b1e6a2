//! Every way in which a receiver can behave badly has its class, its reason and its bounds.

use std::time::{Duration, Instant};

use postbox_core::outcome::FailureClass::{
    self, Gone, Misconfigured, Permanent, Rejected, Transient, Unknown,
};
use postbox_core::outcome::{Confirmation, Failure, Outcome};
use postbox_core::sink::{Attempt, Sink};
use postbox_sinks::standard_webhooks::{SignatureHeaders, Verifier};
use postbox_sinks::webhook::{Envelope, WebhookConfig, WebhookSink};
use postbox_testkit::receiver::{Answer, Receiver, Script};
use postbox_testkit::sink_conformance::{attempt, event};

const DELIVERED: Outcome = Outcome::Delivered(Confirmation { status: Some(200), external_id: None });

struct Pair {
    receiver: Receiver,
    sink: WebhookSink,
}

impl Pair {
    async fn new(script: Script) -> Self {
        let receiver = Receiver::start(script).await;
        let sink = WebhookSink::new(WebhookConfig::new(receiver.url())).expect("the URL is one");
        Self { receiver, sink }
    }

    async fn answering(answer: Answer) -> Self {
        Self::new(Script::always(answer)).await
    }

    async fn deliver(&self) -> Outcome {
        self.sink.deliver(&attempt(event("1", 1, "{}"))).await
    }

    async fn deliver_within(&self, timeout: Duration) -> Outcome {
        self.sink.deliver(&Attempt { timeout, ..attempt(event("1", 1, "{}")) }).await
    }

    async fn fail(&self) -> Failure {
        failure(self.deliver().await)
    }
}

fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?} is no failure"),
    }
}

#[track_caller]
fn assert_failure(failure: &Failure, class: FailureClass, hint: &str) {
    assert_eq!(failure.class, class, "{failure:?}");
    assert!(failure.reason.contains(hint), "{:?} does not say {hint:?}", failure.reason);
}

#[tokio::test]
async fn statuses_are_classified_over_the_wire() {
    for (status, class) in [
        (503, Transient),
        (429, Transient),
        (408, Transient),
        (400, Rejected),
        (413, Rejected),
        (422, Rejected),
        (401, Misconfigured),
        (404, Misconfigured),
        (410, Gone),
        (301, Permanent),
        (304, Permanent),
    ] {
        let failure = Pair::answering(Answer::Status(status)).await.fail().await;
        assert_failure(&failure, class, &format!("answered {status}"));
        assert_eq!(failure.status, Some(status));
    }
}

#[tokio::test]
async fn a_redirect_is_never_followed() {
    let elsewhere = Receiver::start(Script::always(Answer::Ok)).await;
    let pair = Pair::answering(Answer::with_header(307, "location", &elsewhere.url())).await;
    let failure = pair.fail().await;
    assert_failure(&failure, Permanent, "redirects are never followed");
    assert!(failure.reason.contains(&elsewhere.url()));
    assert_eq!((pair.receiver.count(), elsewhere.connections()), (1, 0));
}

#[tokio::test]
async fn what_the_receiver_says_about_a_refusal_is_kept() {
    let pair = Pair::answering(Answer::with_body(400, "unknown customer \u{0} \u{fc}")).await;
    assert_eq!(pair.fail().await.answer.as_deref(), Some("unknown customer  \u{fc}"));
    let pair = Pair::answering(Answer::with_body(500, vec![b'x'; 10_000])).await;
    assert_eq!(pair.fail().await.answer.unwrap().len(), 2_048);
}

#[tokio::test]
async fn a_wait_that_the_receiver_asks_for_is_reported() {
    let failure = Pair::answering(Answer::with_header(429, "retry-after", "90")).await.fail().await;
    assert_eq!(failure.retry_after, Some(Duration::from_secs(90)));
}

#[tokio::test]
async fn garbage_is_unknown_and_said_to_be_no_http() {
    assert_failure(&Pair::answering(Answer::Garbage).await.fail().await, Unknown, "not HTTP");
}

#[tokio::test]
async fn a_connection_closed_or_reset_without_an_answer_is_unknown() {
    assert_failure(&Pair::answering(Answer::Lost).await.fail().await, Unknown, "before an answer came");
    assert_failure(&Pair::answering(Answer::Reset).await.fail().await, Unknown, "before an answer came");
}

#[tokio::test]
async fn a_head_of_ten_megabytes_is_given_up_at_its_bound() {
    let pair = Pair::answering(Answer::HugeHead(10_000_000)).await;
    assert_failure(&pair.fail().await, Unknown, "head is larger than 64 KiB");
}

#[tokio::test]
async fn a_receiver_that_never_answers_costs_the_attempt_its_time_and_no_more() {
    let pair = Pair::answering(Answer::Silence).await;
    let started = Instant::now();
    let failure = failure(pair.deliver_within(Duration::from_millis(300)).await);
    assert_failure(&failure, Unknown, "no answer within 0.3 s");
    assert!(started.elapsed() < Duration::from_secs(3));
    pair.receiver.wait_for_closed(1).await;
}

#[tokio::test]
async fn nothing_is_written_once_the_attempts_time_is_over() {
    let pair = Pair::answering(Answer::Ok).await;
    assert_eq!(pair.deliver().await, DELIVERED);
    let outcome = pair.deliver_within(Duration::ZERO).await;
    assert!(matches!(outcome, Outcome::NotStarted(_)), "{outcome:?}");
    assert_eq!(pair.deliver().await, DELIVERED);
    assert_eq!(pair.receiver.count(), 2);
}

#[tokio::test]
async fn a_head_that_drips_does_not_outlast_the_attempt() {
    let pair = Pair::answering(Answer::Drip(Duration::from_millis(50))).await;
    let failure = failure(pair.deliver_within(Duration::from_millis(300)).await);
    assert_failure(&failure, Unknown, "no answer within");
}

#[tokio::test]
async fn an_endless_body_after_a_confirmation_is_delivered_and_its_connection_dropped() {
    let pair = Pair::answering(Answer::EndlessBody(200)).await;
    assert_eq!(pair.deliver().await, DELIVERED);
    pair.receiver.wait_for_closed(1).await;
}

#[tokio::test]
async fn an_endless_body_after_a_failure_is_cut_off() {
    let pair = Pair::answering(Answer::EndlessBody(500)).await;
    let failure = pair.fail().await;
    assert_failure(&failure, Transient, "answered 500");
    assert_eq!(failure.answer.unwrap().len(), 2_048);
    pair.receiver.wait_for_closed(1).await;
}

#[tokio::test]
async fn a_body_that_breaks_after_a_confirmation_is_delivered() {
    let pair = Pair::answering(Answer::HalfBody(200)).await;
    assert_eq!(pair.deliver().await, DELIVERED);
    assert_eq!(pair.deliver().await, DELIVERED);
    assert_eq!(pair.receiver.connections(), 2, "a connection with half an answer on it is not used again");
}

#[tokio::test]
async fn nobody_listening_is_transient() {
    let pair = Pair::answering(Answer::Ok).await;
    pair.receiver.go_away().await;
    assert_failure(&pair.fail().await, Transient, "connection refused");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_transient() {
    // RFC 6761: names under `.invalid` never resolve.
    let sink = WebhookSink::new(WebhookConfig::new("https://billing.invalid/hooks")).unwrap();
    let failure = failure(sink.deliver(&attempt(event("1", 1, "{}"))).await);
    assert_failure(&failure, Transient, "looking up billing.invalid");
}

#[tokio::test]
async fn attempts_one_after_the_other_share_one_connection() {
    let pair = Pair::answering(Answer::with_body(200, "thanks")).await;
    for _ in 0..20 {
        assert_eq!(pair.deliver().await, DELIVERED);
    }
    assert_eq!((pair.receiver.count(), pair.receiver.connections()), (20, 1));
}

#[tokio::test]
async fn a_refusal_with_a_whole_answer_keeps_its_connection() {
    let pair = Pair::answering(Answer::with_body(503, "later")).await;
    for _ in 0..3 {
        pair.fail().await;
    }
    assert_eq!(pair.receiver.connections(), 1);
}

#[tokio::test]
async fn no_more_connections_are_kept_than_the_concurrency() {
    let receiver = Receiver::start(Script::always(Answer::Held)).await;
    let config = WebhookConfig { concurrency: 2, ..WebhookConfig::new(receiver.url()) };
    let sink = WebhookSink::new(config).unwrap();
    let attempts: Vec<_> = (0..5).map(|n| attempt(event(&n.to_string(), 1, "{}"))).collect();
    let deliveries = async {
        let mut running = tokio::task::JoinSet::new();
        let sink = std::sync::Arc::new(sink);
        for attempt in attempts {
            let sink = std::sync::Arc::clone(&sink);
            running.spawn(async move { sink.deliver(&attempt).await });
        }
        receiver.wait_for(5).await;
        receiver.release();
        (running.join_all().await, sink)
    };
    let (outcomes, _sink) = deliveries.await;
    assert!(outcomes.iter().all(|outcome| *outcome == DELIVERED));
    assert_eq!(receiver.connections(), 5);
    receiver.wait_for_closed(3).await;
}

#[tokio::test]
async fn a_connection_that_the_receiver_announced_to_close_is_not_used_again() {
    let pair = Pair::answering(Answer::OkAndClose).await;
    for _ in 0..3 {
        assert_eq!(pair.deliver().await, DELIVERED);
    }
    assert_eq!(pair.receiver.connections(), 3);
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced_within_the_attempt() {
    let pair = Pair::answering(Answer::OkThenClosed).await;
    for closed in 1..=20 {
        assert_eq!(pair.deliver().await, DELIVERED);
        pair.receiver.wait_for_closed(closed).await;
    }
    assert_eq!(pair.receiver.count(), 20, "nothing was sent twice");
}

#[tokio::test]
async fn the_request_is_one_post_with_exactly_the_signed_body() {
    let secrets =
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1/0MP7gxCbk="];
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let sink = WebhookSink::new(WebhookConfig {
        secrets: secrets.iter().map(|&secret| secret.into()).collect(),
        headers: vec![("authorization".to_owned(), "Bearer abc".into())],
        ..WebhookConfig::new(format!("{}?tenant=a%20b", receiver.url()))
    })
    .unwrap();
    let order = event("1", 3, r#"{"a": "\ud800😀"}"#);
    let replayed = Attempt { number: 2, replay: true, ..attempt(std::sync::Arc::clone(&order)) };
    assert_eq!(sink.deliver(&replayed).await, DELIVERED);
    let requests = receiver.requests();
    let [request] = requests.as_slice() else { panic!("one request: {requests:?}") };
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/hooks?tenant=a%20b"));
    assert_eq!(request.header("content-length").unwrap(), request.body.len().to_string());
    assert_eq!(request.header("host").unwrap(), receiver.address().to_string());
    assert_eq!(
        (request.event_id, request.sequence, request.attempt),
        (Some(order.event_id), Some(3), Some(2))
    );
    assert!(request.replay);
    assert_eq!(request.header("authorization"), Some("Bearer abc"));
    assert!(request.body.ends_with(r#","data":{"a": "\ud800😀"}}"#.as_bytes()));
    let mut headers = http::HeaderMap::new();
    for (name, value) in &request.headers {
        headers.insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    for secret in secrets {
        standardwebhooks::Webhook::new(secret).unwrap().verify(&request.body, &headers).unwrap();
    }
}

#[tokio::test]
async fn every_envelope_is_signed_and_identified_alike_and_carries_the_trace() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (word, content_type, body) in [
        ("json", "application/json", r#"{"event_id":"#),
        ("cloudevents-binary", "application/json", r#"{"total":12}"#),
        ("cloudevents-structured", "application/cloudevents+json; charset=utf-8", r#"{"specversion":"1.0","#),
        ("raw", "application/json", r#"{"total":12}"#),
    ] {
        let receiver = Receiver::start(Script::always(Answer::Ok)).await;
        let sink = WebhookSink::new(WebhookConfig {
            secrets: vec!["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()],
            envelope: Envelope::named(word, None).unwrap(),
            ..WebhookConfig::new(receiver.url())
        })
        .unwrap();
        let mut order = std::sync::Arc::unwrap_or_clone(event("1", 3, r#"{"total":12}"#));
        order.headers = Some(format!(r#"{{"traceparent":"{PARENT}"}}"#));
        assert_eq!(sink.deliver(&attempt(std::sync::Arc::new(order.clone()))).await, DELIVERED);
        let request = receiver.requests().remove(0);
        let text = String::from_utf8(request.body.clone()).unwrap();
        assert!(text.starts_with(body) && text.contains(r#"{"total":12}"#), "{word}: {text}");
        assert_eq!(request.header("content-type"), Some(content_type));
        assert_eq!((request.event_id, request.sequence), (Some(order.event_id), Some(3)), "{word}");
        assert_eq!(request.header("traceparent"), Some(PARENT));
        assert_eq!(request.header("ce-type").is_some(), word == "cloudevents-binary");
        let headers = SignatureHeaders::find(|name| request.header(name)).unwrap();
        let verifier = Verifier::new(&["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()]).unwrap();
        verifier.verify(&headers, &request.body, headers.timestamp.parse().unwrap()).unwrap();
    }
}

#[tokio::test]
async fn what_does_not_fit_into_its_envelope_is_permanent_and_not_sent() {
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let envelope = Envelope::named("cloudevents-structured", None).unwrap();
    let sink = WebhookSink::new(WebhookConfig { envelope, ..WebhookConfig::new(receiver.url()) }).unwrap();
    let outcome = sink.deliver(&attempt(event("a\nb", 1, "{}"))).await;
    assert_failure(&failure(outcome), Permanent, "choose another envelope");
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn a_request_signed_with_a_secret_key_is_verified_with_the_public_one() {
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let sink = WebhookSink::new(WebhookConfig {
        secrets: vec!["whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc=".into()],
        ..WebhookConfig::new(receiver.url())
    })
    .unwrap();
    assert_eq!(sink.deliver(&attempt(event("1", 1, "{}"))).await, DELIVERED);
    let request = receiver.requests().remove(0);
    let headers = SignatureHeaders::find(|name| request.header(name)).unwrap();
    let now = headers.timestamp.parse().unwrap();
    let public = Verifier::new(&["whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=".into()]).unwrap();
    public.verify(&headers, &request.body, now).unwrap();
    public.verify(&headers, b"{}", now).unwrap_err();
}

#[tokio::test]
async fn https_is_spoken_with_receivers_whose_authority_is_trusted() {
    let receiver = Receiver::start_tls(Script::always(Answer::Ok)).await;
    let ca_file = receiver.ca_file().map(std::path::Path::to_path_buf);
    let sink = WebhookSink::new(WebhookConfig { ca_file, ..WebhookConfig::new(receiver.url()) }).unwrap();
    for _ in 0..2 {
        assert_eq!(sink.deliver(&attempt(event("1", 1, "{}"))).await, DELIVERED);
    }
    assert_eq!((receiver.count(), receiver.connections()), (2, 1));
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_or_for_another_name_is_transient_and_nothing_is_sent() {
    let receiver = Receiver::start_tls(Script::always(Answer::Ok)).await;
    let other = Receiver::start_tls(Script::always(Answer::Ok)).await;
    let ca_file = other.ca_file().map(std::path::Path::to_path_buf);
    let sink = WebhookSink::new(WebhookConfig { ca_file, ..WebhookConfig::new(receiver.url()) }).unwrap();
    let failure = failure(sink.deliver(&attempt(event("1", 1, "{}"))).await);
    assert_failure(&failure, Transient, "TLS handshake");
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn a_receiver_that_speaks_no_tls_is_transient_for_an_https_url() {
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let trusted = Receiver::start_tls(Script::always(Answer::Ok)).await;
    let ca_file = trusted.ca_file().map(std::path::Path::to_path_buf);
    let url = receiver.url().replace("http:", "https:");
    let sink = WebhookSink::new(WebhookConfig { ca_file, ..WebhookConfig::new(url) }).unwrap();
    let quick = Attempt { timeout: Duration::from_millis(500), ..attempt(event("1", 1, "{}")) };
    assert_failure(&failure(sink.deliver(&quick).await), Transient, "TLS handshake");
}

#[tokio::test]
async fn a_five_megabyte_payload_arrives_whole() {
    let pair = Pair::answering(Answer::Ok).await;
    let payload = format!("\"{}\"", "x".repeat(5_000_000));
    assert_eq!(pair.sink.deliver(&attempt(event("1", 1, &payload))).await, DELIVERED);
    assert!(pair.receiver.requests()[0].body.ends_with(format!("{payload}}}").as_bytes()));
}
