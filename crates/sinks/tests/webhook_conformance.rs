//! The webhook sink keeps the contract of every sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use postbox_core::sink::Sink;
use postbox_sinks::webhook::{Envelope, WebhookConfig, WebhookSink};
use postbox_testkit::receiver::{Answer, Receiver, Script};
use postbox_testkit::sink_conformance::{self, PeerFault, SinkHarness};
use uuid::Uuid;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

struct WebhookHarness {
    sink: Arc<WebhookSink>,
    receiver: Receiver,
    away: AtomicBool,
}

async fn webhook() -> WebhookHarness {
    webhook_with(Envelope::Json).await
}

async fn webhook_with(envelope: Envelope) -> WebhookHarness {
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let config =
        WebhookConfig { secrets: vec![SECRET.into()], envelope, ..WebhookConfig::new(receiver.url()) };
    let sink = Arc::new(WebhookSink::new(config).expect("the receiver's URL is one"));
    WebhookHarness { sink, receiver, away: AtomicBool::new(false) }
}

#[async_trait]
impl SinkHarness for WebhookHarness {
    fn sink(&self) -> Arc<dyn Sink> {
        Arc::<WebhookSink>::clone(&self.sink)
    }

    async fn misbehave(&self, fault: PeerFault) {
        let away = fault == PeerFault::Unreachable;
        match (self.away.swap(away, Ordering::Relaxed), away) {
            (false, true) => self.receiver.go_away().await,
            (true, false) => self.receiver.come_back().await,
            _ => {}
        }
        self.receiver.set_script(Script::always(match fault {
            PeerFault::None | PeerFault::Unreachable => Answer::Ok,
            PeerFault::Overloaded => Answer::with_header(503, "retry-after", "5"),
            PeerFault::Refuses => Answer::with_body(422, "no such customer"),
            PeerFault::AnswerLost => Answer::Lost,
            PeerFault::Silent => Answer::Silence,
            PeerFault::Garbage => Answer::Garbage,
            PeerFault::Endless => Answer::EndlessBody(200),
        }));
    }

    async fn wait_for(&self, count: usize) {
        self.receiver.wait_for(count).await;
    }

    fn received(&self) -> Vec<Uuid> {
        self.receiver
            .requests()
            .iter()
            .map(|request| request.event_id.expect("every request names its event"))
            .collect()
    }

    fn payloads(&self) -> Vec<String> {
        self.receiver
            .requests()
            .iter()
            .map(|request| {
                let body = std::str::from_utf8(&request.body).expect("JSON is UTF-8");
                let data = body.find(",\"data\":").expect("the envelope has data") + ",\"data\":".len();
                body[data..body.len() - 1].to_owned()
            })
            .collect()
    }

    fn secret(&self) -> Option<String> {
        Some(SECRET.to_owned())
    }
}

postbox_testkit::sink_conformance!(webhook);

/// What differs between envelopes is what producers wrote, in bodies and in headers.
#[tokio::test]
async fn strange_names_do_no_harm_in_any_envelope() {
    for word in Envelope::WORDS {
        let harness = webhook_with(Envelope::named(word, None).expect("it is one of the words")).await;
        sink_conformance::confirming::strange_names_do_no_harm(&harness).await;
        for request in harness.receiver.requests() {
            assert_eq!(request.header("x-injected"), None, "{word}");
        }
    }
}
