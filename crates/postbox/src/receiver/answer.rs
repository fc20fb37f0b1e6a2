//! What a receiver tells the sender.

/// The answer to one request. Its status is chosen so that the sender's failure policy does the right thing: it goes on
/// after 2xx, tries 5xx again by its schedule, soon gives up what is refused (400, 413, 422), and stops sending
/// altogether when nothing can be right (401).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the sender waits for it"]
pub enum Answer {
    /// 200: acted upon, and committed.
    Done,
    /// 200: it was acted upon before.
    Duplicate,
    /// 401: the signature is missing or wrong, or the clocks are apart.
    Unauthorized(String),
    /// 400: signed, but not an event as this library sends it.
    Malformed(String),
    /// 413: longer than the receiver reads.
    TooLarge,
    /// 422: the application will never accept this event.
    Refused(String),
    /// 500: the application or the transaction failed this time. The reason stays here: it is for logs, and not sent.
    Failed(String),
    /// 503: the database cannot be reached. The sender slows down.
    Unavailable,
}

impl Answer {
    /// Its HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Done | Self::Duplicate => 200,
            Self::Malformed(_) => 400,
            Self::Unauthorized(_) => 401,
            Self::TooLarge => 413,
            Self::Refused(_) => 422,
            Self::Failed(_) => 500,
            Self::Unavailable => 503,
        }
    }

    /// What to send as the body: one line for the sender's records, without anything internal.
    #[must_use]
    pub fn body(&self) -> &str {
        match self {
            Self::Done => "done",
            Self::Duplicate => "duplicate",
            Self::Unauthorized(reason) | Self::Malformed(reason) | Self::Refused(reason) => reason,
            Self::TooLarge => "the body is too large",
            Self::Failed(_) => "failed",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Why the application's function did not act. Either way everything it wrote is rolled back, and the inbox forgets the
/// event.
#[derive(Debug)]
pub enum HandlerError {
    /// It may work later: answered with 500. Every error becomes this one by `?`.
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// It never will: answered with 422 and this reason, which the sender records.
    Refused(String),
}

impl HandlerError {
    /// The event will never be accepted, because of `reason`.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<HandlerError> for Answer {
    fn from(error: HandlerError) -> Self {
        match error {
            HandlerError::Failed(error) => Self::failed(&*error),
            HandlerError::Refused(reason) => Self::Refused(reason),
        }
    }
}

impl Answer {
    /// Failed because of `error` and its causes.
    pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> Self {
        let causes = std::iter::successors(Some(error), |error| error.source());
        Self::Failed(causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
    }
}
