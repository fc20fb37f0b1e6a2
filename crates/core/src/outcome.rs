//! How an attempt ended, in the classes that the failure policy knows.

use std::time::Duration;

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The destination confirmed the event. The only variant on which anything is settled as delivered.
    Delivered(Confirmation),
    /// A request was started (or could not even be connected) and was not confirmed.
    Failed(Failure),
    /// No request was started, for a reason on our side; costs no attempt and is tried again soon.
    NotStarted(String),
}

/// What a destination said when it confirmed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// Status code of the answer, where the protocol has one.
    pub status: Option<u16>,
    /// The destination's own name for the message (a `wamid`, a stream sequence), where it gives one.
    pub external_id: Option<String>,
}

/// What is known of an attempt that was not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the policy decides on.
    pub class: FailureClass,
    /// Status code of the answer, if one was read.
    pub status: Option<u16>,
    /// One line for the operator: what happened. No payload, no secret, no NUL, at most 500 bytes.
    pub reason: String,
    /// Beginning of the answer's body, at most 2 KiB, made valid UTF-8 without NUL.
    pub answer: Option<String>,
    /// How long the destination asked us to wait, already clamped to 1 s – 24 h.
    pub retry_after: Option<Duration>,
    /// Who has to wait, when the class is [`FailureClass::Throttled`].
    pub scope: Scope,
}

/// Whom a limit of the destination concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// This delivery, and so its lane behind it.
    #[default]
    Lane,
    /// Everything that goes to this destination.
    Destination,
    /// Every destination of the same account ([`crate::destination::Destination::account`]).
    Account,
}

impl Failure {
    /// A failure of `class` with a reason and nothing else known.
    pub fn new(class: FailureClass, reason: impl Into<String>) -> Self {
        Self {
            class,
            status: None,
            reason: reason.into(),
            answer: None,
            retry_after: None,
            scope: Scope::Lane,
        }
    }
}

/// Classes of failure; [`crate::retry::RetryPolicy::decide`] maps them to actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// Likely to pass: 408, 425, 429, 5xx, connection, DNS or TLS trouble.
    Transient,
    /// Timeout or reset after the request was written: the destination may have the event.
    Unknown,
    /// The destination understood and refused this event: 400, 413, 415, 422 and other 4xx.
    Rejected,
    /// Every event would fail the same way: 401, 403, 404.
    Misconfigured,
    /// The destination asked to be left alone for good: 410.
    Gone,
    /// Never worth repeating: a redirect, a blocked address, a payload the sink cannot send.
    Permanent,
    /// Refused for now by a limit on how much may be sent: waits, and uses up none of the attempts that the policy allows.
    Throttled,
    /// The account behind the destination may not send until somebody acts: the destination is disabled, everything is kept.
    Suspended,
}

impl FailureClass {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Transient,
        Self::Unknown,
        Self::Rejected,
        Self::Misconfigured,
        Self::Gone,
        Self::Permanent,
        Self::Throttled,
        Self::Suspended,
    ];

    /// The class named by `word`, if there is one.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// The word used in SQL, CLI and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Unknown => "unknown",
            Self::Rejected => "rejected",
            Self::Misconfigured => "misconfigured",
            Self::Gone => "gone",
            Self::Permanent => "permanent",
            Self::Throttled => "throttled",
            Self::Suspended => "suspended",
        }
    }
}
