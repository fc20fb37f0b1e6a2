//! What a receiver does with a request it has read.

use std::sync::Arc;
use std::time::Duration;

use super::record::Received;

/// What happens after a request was read and recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 200 without a body.
    Ok,
    /// This status without a body.
    Status(u16),
    /// This status with these headers and this body.
    With {
        /// The status.
        status: u16,
        /// Headers, besides `content-length`.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// Another answer, after this long.
    After(Duration, Box<Answer>),
    /// 200 once [`super::Receiver::release`] was called.
    Held,
    /// The connection is closed without an answer: the receiver has the event, the sender does not know.
    Lost,
    /// As `Lost`, by a reset instead of an orderly close.
    Reset,
    /// Nothing at all, while the connection stays open.
    Silence,
    /// Bytes that are not HTTP, then the end.
    Garbage,
    /// This status, then a body without end.
    EndlessBody(u16),
    /// This status, then this, then more without end.
    EndlessAfter(u16, Vec<u8>),
    /// A head with one header of this many bytes.
    HugeHead(usize),
    /// A head with headers without end.
    EndlessHead,
    /// Interim answers (102) without end.
    EndlessInterim,
    /// This status, then a body without end, one byte after each such while.
    SlowBody(u16, Duration),
    /// This status with a `content-length` of which only half comes before the connection is closed.
    HalfBody(u16),
    /// An orderly 200 with this body, one byte of it after each such while.
    DripBody(Duration, Vec<u8>),
    /// An orderly 200 with a body, one byte after each such while.
    Drip(Duration),
    /// 200 with `connection: close`, then the end.
    OkAndClose,
    /// 200, then the connection is closed without a word.
    OkThenClosed,
}

impl Answer {
    /// `status` with one header.
    #[must_use]
    pub fn with_header(status: u16, name: &str, value: &str) -> Self {
        Self::With { status, headers: vec![(name.to_owned(), value.to_owned())], body: Vec::new() }
    }

    /// `status` with a body.
    #[must_use]
    pub fn with_body(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::With { status, headers: Vec::new(), body: body.into() }
    }

    /// Whether it is given as soon as the request was read.
    pub(super) fn is_immediate(&self) -> bool {
        !matches!(self, Self::After(..) | Self::Held | Self::Drip(_) | Self::DripBody(..))
    }

    /// The status that reaches the sender whole, if one does.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Ok | Self::Held | Self::OkAndClose | Self::OkThenClosed => Some(200),
            Self::Status(status)
            | Self::With { status, .. }
            | Self::EndlessBody(status)
            | Self::EndlessAfter(status, _)
            | Self::SlowBody(status, _)
            | Self::HalfBody(status) => Some(*status),
            Self::After(_, answer) => answer.status(),
            Self::Drip(_) | Self::DripBody(..) => Some(200),
            Self::Lost
            | Self::Reset
            | Self::Silence
            | Self::Garbage
            | Self::HugeHead(_)
            | Self::EndlessHead
            | Self::EndlessInterim => None,
        }
    }
}

/// Decides the answer to each request.
#[derive(Clone)]
pub struct Script {
    decide: Decide,
}

#[derive(Clone)]
enum Decide {
    Always(Answer),
    Each(Arc<dyn Fn(&Received) -> Answer + Send + Sync>),
}

impl Script {
    /// The same answer to every request.
    #[must_use]
    pub fn always(answer: Answer) -> Self {
        Self { decide: Decide::Always(answer) }
    }

    /// These answers in order of arrival; the last one repeats. Without any, 200.
    #[must_use]
    pub fn in_order(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().collect();
        Self::each(move |request| {
            answers.get(request.arrival).or(answers.last()).cloned().unwrap_or(Answer::Ok)
        })
    }

    /// What `decide` says of each request.
    pub fn each(decide: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        Self { decide: Decide::Each(Arc::new(decide)) }
    }

    /// The one answer to everything, if it is 200: then a request need not even be looked at.
    pub(super) fn is_always_ok(&self) -> bool {
        matches!(self.decide, Decide::Always(Answer::Ok))
    }

    pub(super) fn decide(&self, request: &Received) -> Answer {
        match &self.decide {
            Decide::Always(answer) => answer.clone(),
            Decide::Each(decide) => decide(request),
        }
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.decide {
            Decide::Always(answer) => write!(f, "Script::always({answer:?})"),
            Decide::Each(_) => f.write_str("Script::each(…)"),
        }
    }
}
