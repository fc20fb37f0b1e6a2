//! The receiver itself.

use std::sync::{Mutex, PoisonError};

use http::{Method, StatusCode};
use jiff::Timestamp;
use postbox_sinks::standard_webhooks::{SignatureHeaders, Verifier};
use tokio::sync::mpsc;

use super::delivery::Delivery;
use super::line::{Line, Signature, Style};
use super::memory::{Mark, Memory};
use super::mood::{Decision, Mood};
use super::tally::Tally;
use crate::receiver::{Answer, Arrived, Receive};

/// Lines that may wait to be printed; then requests wait with them.
const MAX_WAITING_LINES: usize = 1_024;

/// Takes deliveries, and tells a line for each.
#[derive(Debug)]
pub(crate) struct Listener {
    verifier: Option<Verifier>,
    style: Style,
    state: Mutex<State>,
    lines: mpsc::Sender<String>,
}

/// What changes from request to request.
#[derive(Debug)]
struct State {
    mood: Mood,
    memory: Memory,
    tally: Tally,
}

impl Listener {
    /// A listener, and the lines it tells. Without a verifier signatures are not looked at.
    pub(crate) fn new(
        verifier: Option<Verifier>,
        mood: Mood,
        style: Style,
    ) -> (Self, mpsc::Receiver<String>) {
        let (lines, told) = mpsc::channel(MAX_WAITING_LINES);
        let state = Mutex::new(State { mood, memory: Memory::default(), tally: Tally::default() });
        (Self { verifier, style, state, lines }, told)
    }

    /// The counts so far.
    pub(crate) fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signature(&self, request: &Arrived, now: Timestamp) -> Signature {
        let Some(verifier) = &self.verifier else { return Signature::Unchecked };
        let verified = SignatureHeaders::find(|name| request.header(name))
            .and_then(|headers| verifier.verify(&headers, &request.body, now.as_second()));
        match verified {
            Ok(()) => Signature::Verified,
            Err(error) => Signature::Refused(error.to_string()),
        }
    }

    /// Decides, remembers and counts; what is to be printed and answered.
    fn take(&self, request: &Arrived) -> (String, Answer) {
        let at = Timestamp::now();
        let delivery = Delivery::read(request);
        if request.method != Method::POST || delivery.event_id.is_none() {
            self.lock().tally.count_unreadable();
            return (self.unreadable(at, request), Answer::status(StatusCode::BAD_REQUEST));
        }
        let signature = self.signature(request, at);
        let mut state = self.lock();
        let (decision, mark) = match &signature {
            // As a careful receiver does: nothing of it is believed, so nothing of it is remembered.
            Signature::Refused(_) => (Decision::Status(StatusCode::UNAUTHORIZED), Mark::Fine),
            _ => (state.mood.decide(), state.memory.judge(&delivery)),
        };
        if decision.accepts() {
            state.memory.accept(&delivery);
        }
        state.tally.count(decision, &signature, mark);
        let answer = state.mood.answer(decision);
        drop(state);
        let line =
            Line { at, delivery: &delivery, decision, signature: &signature, mark, body: &request.body };
        (line.render(self.style), answer)
    }

    fn unreadable(&self, at: Timestamp, request: &Arrived) -> String {
        let problem = "no event: not a POST with the header x-idempotency-key";
        if self.style.json {
            let bytes = request.body.len();
            return serde_json::json!({ "at": at, "status": 400, "problem": problem, "body_bytes": bytes })
                .to_string();
        }
        format!("{}  400  {problem}", crate::moment::show_moment_exactly(at))
    }
}

impl Receive for Listener {
    async fn receive(&self, request: Arrived) -> Answer {
        let (line, answer) = self.take(&request);
        // Nobody prints any more when the command is about to end.
        let _ = self.lines.send(line).await;
        let delay = self.lock().mood.delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        answer
    }
}
