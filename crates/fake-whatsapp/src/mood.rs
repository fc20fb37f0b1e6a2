//! What is done with each message.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use postbox_core::callback::CallbackMark;
use serde_json::Value;

use crate::status::Status;

/// A request that passed every check.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Its place in the order of arrival, from 0; requests that were refused by a check are not counted.
    pub arrival: usize,
    /// The recipient: the digits of a number, or the id of a person or a group.
    pub to: String,
    /// Postbox's mark, if it carries one.
    pub mark: Option<CallbackMark>,
    /// The request.
    pub body: Value,
}

/// What is done with one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mood {
    /// Whether it is taken, and what its sender learns of that.
    pub take: Take,
    /// Pause between reading the request and the answer.
    pub pause: Duration,
    /// The statuses of a message that was taken, in the order in which they are sent; the same one twice is sent twice.
    pub statuses: Vec<Status>,
    /// Whether the callback has them before the request is answered (or its answer lost).
    pub statuses_first: bool,
}

/// Whether a message is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// Taken and answered with its id.
    Accepted,
    /// Taken; then the connection is reset instead of an answer.
    ThenReset,
    /// Taken; then nothing, while the connection stays open.
    ThenSilence,
    /// Refused with this error code, its title and usual status.
    Refused(u32),
    /// Answered with this status and body, whatever they are; not taken.
    Answered(u16, String),
    /// The connection is reset after the request was read; not taken.
    Reset,
}

impl Mood {
    /// Takes it, answers, and reports that it was sent, delivered and read.
    #[must_use]
    pub fn accept() -> Self {
        Self {
            take: Take::Accepted,
            pause: Duration::ZERO,
            statuses: vec![Status::Sent, Status::Delivered, Status::Read],
            statuses_first: false,
        }
    }

    /// Takes it and loses the answer by a reset; the statuses come all the same.
    #[must_use]
    pub fn lose_the_answer() -> Self {
        Self { take: Take::ThenReset, ..Self::accept() }
    }

    /// Refuses it with this error code.
    #[must_use]
    pub fn refuse(code: u32) -> Self {
        Self { take: Take::Refused(code), ..Self::accept() }
    }

    /// The same with these statuses.
    #[must_use]
    pub fn with_statuses(self, statuses: impl Into<Vec<Status>>) -> Self {
        Self { statuses: statuses.into(), ..self }
    }

    /// The same without a status.
    #[must_use]
    pub fn in_silence(self) -> Self {
        self.with_statuses([])
    }
}

/// Chooses a [`Mood`] for each message.
#[derive(Clone)]
pub struct Plan(Arc<dyn Fn(&Incoming) -> Mood + Send + Sync>);

impl Plan {
    /// What `choose` says of each message.
    pub fn each(choose: impl Fn(&Incoming) -> Mood + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }

    /// The same mood for every message.
    #[must_use]
    pub fn always(mood: Mood) -> Self {
        Self::each(move |_| mood.clone())
    }

    /// These moods in the order of arrival; the last one repeats. Without any, every message is accepted.
    #[must_use]
    pub fn in_order(moods: impl IntoIterator<Item = Mood>) -> Self {
        let moods: Vec<Mood> = moods.into_iter().collect();
        Self::each(move |incoming| {
            moods.get(incoming.arrival).or(moods.last()).cloned().unwrap_or_else(Mood::accept)
        })
    }

    pub(crate) fn choose(&self, incoming: &Incoming) -> Mood {
        (self.0)(incoming)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plan")
    }
}
