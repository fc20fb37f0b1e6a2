//! The WhatsApp sink keeps the contract of every sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use postbox_core::callback::CallbackMark;
use postbox_core::sink::Sink;
use postbox_sinks::whatsapp::{WhatsappConfig, WhatsappSink};
use postbox_testkit::receiver::{Answer, Received, Receiver, Script};
use postbox_testkit::sink_conformance::{PeerFault, SinkHarness};
use uuid::Uuid;

const TOKEN: &str = "EAAGm0PX4ZCpsBAKZCtoken";

const ACCEPTED: &str = r#"{"messaging_product":"whatsapp","contacts":[{"input":"+491701234567","wa_id":"491701234567"}],"messages":[{"id":"wamid.HBgLMTY1MA=="}]}"#;

struct WhatsappHarness {
    sink: Arc<WhatsappSink>,
    receiver: Receiver,
    away: AtomicBool,
}

async fn whatsapp() -> WhatsappHarness {
    let receiver = Receiver::start(Script::always(Answer::with_body(200, ACCEPTED))).await;
    let config = WhatsappConfig {
        base_url: format!("http://{}", receiver.address()),
        ..WhatsappConfig::new("106540352242922", TOKEN)
    };
    let sink = Arc::new(WhatsappSink::new(config).expect("the receiver's address is one"));
    WhatsappHarness { sink, receiver, away: AtomicBool::new(false) }
}

/// The body as the producer stored it, and the mark behind it.
fn taken_apart(request: &Received) -> (String, CallbackMark) {
    let body = std::str::from_utf8(&request.body).expect("JSON is UTF-8");
    let (stored, mark) =
        body.rsplit_once(",\"biz_opaque_callback_data\":\"").expect("every request is marked");
    let mark = mark.strip_suffix("\"}").and_then(CallbackMark::parse).expect("the mark is one");
    (format!("{stored}}}"), mark)
}

#[async_trait]
impl SinkHarness for WhatsappHarness {
    fn sink(&self) -> Arc<dyn Sink> {
        Arc::<WhatsappSink>::clone(&self.sink)
    }

    async fn misbehave(&self, fault: PeerFault) {
        let away = fault == PeerFault::Unreachable;
        match (self.away.swap(away, Ordering::Relaxed), away) {
            (false, true) => self.receiver.go_away().await,
            (true, false) => self.receiver.come_back().await,
            _ => {}
        }
        self.receiver.set_script(Script::always(match fault {
            PeerFault::None | PeerFault::Unreachable => Answer::with_body(200, ACCEPTED),
            PeerFault::Overloaded => Answer::with_header(503, "retry-after", "5"),
            PeerFault::Refuses => Answer::with_body(422, "no such thing"),
            PeerFault::AnswerLost => Answer::Lost,
            PeerFault::Silent => Answer::Silence,
            PeerFault::Garbage => Answer::Garbage,
            PeerFault::Endless => Answer::EndlessAfter(200, ACCEPTED.into()),
        }));
    }

    async fn wait_for(&self, count: usize) {
        self.receiver.wait_for(count).await;
    }

    fn received(&self) -> Vec<Uuid> {
        self.receiver.requests().iter().map(|request| taken_apart(request).1.event_id).collect()
    }

    fn payloads(&self) -> Vec<String> {
        self.receiver.requests().iter().map(|request| taken_apart(request).0).collect()
    }

    fn secret(&self) -> Option<String> {
        Some(TOKEN.to_owned())
    }

    fn payload(&self, json: &str) -> String {
        format!(
            r#"{{"messaging_product":"whatsapp","to":"+491701234567","type":"text","text":{{"body":"x"}},"context":{json}}}"#
        )
    }
}

postbox_testkit::sink_conformance!(whatsapp);
