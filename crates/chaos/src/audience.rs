//! The receiver: works a moment on each request, and fails, stalls or forgets to answer as its mood and dice decide.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use postbox_testkit::faults::Dice;
use postbox_testkit::ledger::{self, Entry};
use postbox_testkit::receiver::{Answer, Received, Receiver, RecordFile, Recording, Script};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::clock::{self, Micros};

/// How a receiver behaves for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Answers 200, but for a few. In this mood and all but the last, some events are refused whenever they come.
    Good,
    /// Answers 503 to most.
    Failing,
    /// Answers many later than any attempt waits, or never.
    Stalling,
    /// Takes many events and closes the connection instead of answering.
    Forgetful,
    /// Answers 200 to everything.
    Perfect,
}

/// A request that the receiver confirmed, or was about to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sighting {
    pub(crate) event: Uuid,
    pub(crate) at: Micros,
}

#[derive(Debug)]
struct Minutes {
    mood: Mood,
    dice: Dice,
    confirmed: Vec<Sighting>,
}

/// A receiver that keeps a record on disk.
#[derive(Debug)]
pub struct Audience {
    receiver: Receiver,
    record: PathBuf,
    minutes: Arc<Mutex<Minutes>>,
}

impl Audience {
    /// Starts to receive; attempts are known to wait no longer than `attempt` for an answer.
    ///
    /// # Panics
    /// When the record cannot be written or no port can be bound.
    pub async fn gather(folder: &Path, mood: Mood, seed: u64, attempt: Duration) -> Self {
        let record = folder.join("record");
        let file = RecordFile::append(&record).expect("the record can be made");
        let minutes = Arc::new(Mutex::new(Minutes { mood, dice: Dice::new(seed), confirmed: Vec::new() }));
        let kept = Arc::clone(&minutes);
        let script = Script::each(move |request| lock(&kept).answer(request, attempt));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of 127.0.0.1 can be bound");
        let receiver = Receiver::on(listener, script, Recording::File(file));
        Self { receiver, record, minutes }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.receiver.address()
    }

    /// Requests so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.receiver.count()
    }

    /// Changes how it behaves from now on.
    pub fn set_mood(&self, mood: Mood) {
        lock(&self.minutes).mood = mood;
    }

    /// Its record so far.
    ///
    /// # Panics
    /// When the record cannot be read.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        ledger::read(&self.record).expect("the record can be read")
    }

    pub(crate) fn sightings(&self) -> Vec<Sighting> {
        lock(&self.minutes).confirmed.clone()
    }
}

fn lock(minutes: &Mutex<Minutes>) -> MutexGuard<'_, Minutes> {
    minutes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events that the receiver refuses in every mood but [`Mood::Perfect`]; about one in two hundred.
pub(crate) fn is_poison(event: Uuid) -> bool {
    event.as_u128().is_multiple_of(199)
}

impl Minutes {
    fn answer(&mut self, request: &Received, attempt: Duration) -> Answer {
        let Some(event) = request.event_id else { return Answer::Status(400) };
        let (answer, confirms) = self.decide(event, attempt);
        if confirms {
            self.confirmed.push(Sighting { event, at: clock::now() });
        }
        answer
    }

    /// The answer, and whether the event counts as confirmed by it.
    fn decide(&mut self, event: Uuid, attempt: Duration) -> (Answer, bool) {
        let work = Duration::from_micros(2_000 + self.dice.below(8_000) as u64);
        let after = |pause, answer| Answer::After(pause, Box::new(answer));
        if is_poison(event) && self.mood != Mood::Perfect {
            return (after(work, Answer::Status(422)), false);
        }
        let dice = self.dice.below(1_000);
        let (fails, stalls, is_silent, forgets) = match self.mood {
            Mood::Good => (30, 3, 2, 10),
            Mood::Failing => (700, 0, 0, 10),
            Mood::Stalling => (30, 250, 100, 10),
            Mood::Forgetful => (30, 0, 0, 400),
            Mood::Perfect => (0, 0, 0, 0),
        };
        let (stalls, is_silent) = (fails + stalls, fails + stalls + is_silent);
        if dice < fails {
            (after(work, Answer::Status(503)), false)
        } else if dice < stalls {
            (after(attempt * 3 / 2, Answer::Ok), true)
        } else if dice < is_silent {
            (Answer::Silence, false)
        } else if dice < is_silent + forgets {
            (after(work, [Answer::Lost, Answer::Reset][self.dice.below(2)].clone()), false)
        } else {
            (after(work, Answer::Ok), true)
        }
    }
}
