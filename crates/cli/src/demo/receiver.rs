//! The receiver: it writes down what it really got, and misbehaves now and then.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::watch;
use uuid::Uuid;

use crate::dice::Dice;
use crate::receiver::{Answer, Arrived, Receive, Server};

/// Requests answered 503, in percent.
pub(super) const REFUSED_PERCENT: u64 = 4;

/// Requests that are taken and whose answer is lost, in percent.
pub(super) const LOST_ANSWERS_PERCENT: u64 = 1;

/// Time until an answer.
const WORK: Duration = Duration::from_millis(3);

/// A position in the order of everything that happened at the receiver.
pub(super) type Tick = u64;

/// What the receiver did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Took the event and answered 200.
    Taken,
    /// Took the event and closed the connection without an answer.
    AnswerLost,
    /// Did not take the event and answered 503.
    Refused,
}

impl Verdict {
    pub(super) fn took_it(self) -> bool {
        self != Self::Refused
    }
}

/// One event in one request.
#[derive(Debug, Clone)]
pub(super) struct Receipt {
    pub(super) event_id: Uuid,
    pub(super) order: String,
    pub(super) sequence: u64,
    pub(super) event_type: String,
    pub(super) verdict: Verdict,
    pub(super) arrived: Tick,
    /// When the answer was given; `None` if the sender was gone by then.
    pub(super) answered: Option<Tick>,
}

/// Everything the receiver got.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    pub(super) receipts: Vec<Receipt>,
    /// Requests that carry no event.
    pub(super) unreadable: u64,
    /// Ticks given out so far.
    pub(super) clock: Tick,
}

impl Record {
    fn tick(&mut self) -> Tick {
        self.clock += 1;
        self.clock
    }
}

/// An open receiver; dropping it closes it.
#[derive(Debug)]
pub(super) struct Receiver {
    counter: Arc<Counter>,
    server: Server,
}

/// What all connections share.
#[derive(Debug)]
struct Counter {
    seed: u64,
    record: Mutex<Record>,
    taken: watch::Sender<u64>,
}

impl Receiver {
    /// Opens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be bound.
    pub(super) async fn open(seed: u64) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let counter = Arc::new(Counter { seed, record: Mutex::default(), taken: watch::Sender::new(0) });
        let server = Server::on(listener, Arc::clone(&counter))?;
        Ok(Self { counter, server })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/orders", self.server.address())
    }

    /// Number of different or repeated events taken, as it grows.
    pub(super) fn taken(&self) -> watch::Receiver<u64> {
        self.counter.taken.subscribe()
    }

    /// The present moment at the receiver.
    pub(super) fn now(&self) -> Tick {
        self.counter.lock().tick()
    }

    /// A copy of everything received so far.
    pub(super) fn record(&self) -> Record {
        self.counter.lock().clone()
    }
}

impl Counter {
    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a request down and decides what to do with it; `None` when it carries no event.
    fn take_down(&self, attempt: u64, body: &[u8]) -> Option<(usize, Verdict)> {
        #[derive(serde::Deserialize)]
        struct Envelope {
            event_id: Uuid,
            r#type: String,
            aggregate_id: String,
            sequence: u64,
        }
        let mut record = self.lock();
        let arrived = record.tick();
        let Ok(envelope) = serde_json::from_slice::<Envelope>(body) else {
            record.unreadable += 1;
            return None;
        };
        let order = envelope.aggregate_id.parse().unwrap_or_default();
        let mut dice = Dice::of(self.seed, &[2, order, envelope.sequence, attempt]);
        let verdict = if dice.happens(REFUSED_PERCENT) {
            Verdict::Refused
        } else if dice.happens(LOST_ANSWERS_PERCENT) {
            Verdict::AnswerLost
        } else {
            Verdict::Taken
        };
        record.receipts.push(Receipt {
            event_id: envelope.event_id,
            order: envelope.aggregate_id,
            sequence: envelope.sequence,
            event_type: envelope.r#type,
            verdict,
            arrived,
            answered: None,
        });
        if verdict.took_it() {
            self.taken.send_modify(|taken| *taken += 1);
        }
        Some((record.receipts.len() - 1, verdict))
    }

    fn answered(&self, receipt: usize) {
        let mut record = self.lock();
        record.receipts[receipt].answered = Some(record.tick());
    }
}

impl Receive for Counter {
    async fn receive(&self, request: Arrived) -> Answer {
        let attempt = request.header("postbox-attempt").and_then(|value| value.parse().ok());
        let Some((receipt, verdict)) = self.take_down(attempt.unwrap_or_default(), &request.body) else {
            return Answer::status(StatusCode::BAD_REQUEST);
        };
        tokio::time::sleep(WORK).await;
        let answer = match verdict {
            Verdict::Taken => Answer::status(StatusCode::OK),
            Verdict::AnswerLost => return Answer::Lost,
            Verdict::Refused => Answer::status(StatusCode::SERVICE_UNAVAILABLE),
        };
        self.answered(receipt);
        answer
    }
}
