//! What the engine has to know of a destination; how to reach it is the sink's own business.

pub mod bounds;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::delivery::DestinationName;
use crate::outcome::{Confirmation, Failure, FailureClass, Outcome};
use crate::retry::RetryPolicy;
use crate::route::Route;

/// A destination as the engine sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// Unique, stable name: it is part of every stored delivery.
    pub name: DestinationName,
    /// Which events go there.
    pub route: Route,
    /// What must come before what.
    pub ordering: Ordering,
    /// Attempts in flight at once from one relay, at least 1.
    pub concurrency: usize,
    /// Attempts started per time, all relays together; `None` for no limit.
    pub rate: Option<RateLimit>,
    /// Attempts started per time on each lane, by each relay; `None` for no limit.
    pub lane_rate: Option<RateLimit>,
    /// The account that it shares with other destinations: a limit on the one ([`Scope::Account`]) is a limit on all.
    ///
    /// [`Scope::Account`]: crate::outcome::Scope::Account
    pub account: Option<Arc<str>>,
    /// Set for a destination that cannot recognise a repeated event, but may tell later whether it has one.
    pub evidence: Option<EvidencePolicy>,
    /// When to leave the destination alone for a while; `None` for never.
    pub breaker: Option<BreakerPolicy>,
    /// Longest time one attempt may take; no attempt starts when less is left of the lease.
    pub timeout: Duration,
    /// When and how often to try again.
    pub retry: RetryPolicy,
    /// Answers that mean something else here than elsewhere, by status code.
    pub overrides: BTreeMap<u16, Treatment>,
    /// Why nothing is sent there until further notice; its events are kept. `None` when it is enabled.
    pub disabled: Option<String>,
}

/// Attempts in flight at once per destination when nothing else is said.
pub const DEFAULT_CONCURRENCY: usize = 64;

/// Longest time of one attempt when nothing else is said (design, section 6).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

impl Destination {
    /// An enabled destination with the defaults of everything else.
    pub fn new(name: impl Into<DestinationName>, route: Route) -> Self {
        Self {
            name: name.into(),
            route,
            ordering: Ordering::default(),
            concurrency: DEFAULT_CONCURRENCY,
            rate: None,
            lane_rate: None,
            account: None,
            evidence: None,
            breaker: Some(BreakerPolicy::default()),
            timeout: DEFAULT_TIMEOUT,
            retry: RetryPolicy::default(),
            overrides: BTreeMap::new(),
            disabled: None,
        }
    }

    /// What an outcome means here.
    #[must_use]
    pub fn treat(&self, outcome: Outcome) -> Outcome {
        let Outcome::Failed(failure) = outcome else { return outcome };
        match failure.status.and_then(|status| self.overrides.get(&status)) {
            Some(Treatment::Delivered) => {
                Outcome::Delivered(Confirmation { status: failure.status, external_id: None })
            }
            Some(&Treatment::Failed(class)) => Outcome::Failed(Failure { class, ..failure }),
            None => Outcome::Failed(failure),
        }
    }
}

/// What must come before what at one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ordering {
    /// Events of one aggregate in their order, one at a time.
    #[default]
    Lane,
    /// Each event by itself: a failing one delays no other.
    None,
}

impl Ordering {
    /// Each with the word for it.
    pub const WORDS: [(&'static str, Self); 2] = [("lane", Self::Lane), ("none", Self::None)];
}

/// A limit on attempts started per time, by the generic cell rate algorithm (ITU-T I.371).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Attempts per `per`, at least 1.
    pub count: u32,
    /// The time in which `count` attempts may start, evenly spread; more than zero.
    pub per: Duration,
    /// Attempts that may start at once after a quiet time, at least 1.
    pub burst: u32,
}

/// What to do when nobody knows whether an attempt arrived, at a destination without idempotency.
///
/// There, an attempt is committed before its request is written, so that a crash leaves it *unknown* rather than
/// forgotten. What the destination says later (a status message that names the event) settles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvidencePolicy {
    /// How long to wait for evidence, from the beginning of the attempt; longer than the attempt may take.
    pub wait: Duration,
    /// What happens when none came.
    pub without: WithoutEvidence,
}

/// What happens to a delivery whose outcome is still unknown when the wait for evidence is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WithoutEvidence {
    /// It holds its lane for an operator: nothing is sent twice.
    #[default]
    Hold,
    /// It is sent again: nothing is left out.
    Resend,
}

impl WithoutEvidence {
    /// Each with the word for it.
    pub const WORDS: [(&'static str, Self); 2] = [("hold", Self::Hold), ("resend", Self::Resend)];
}

/// When a destination is left alone, so that its events cost it nothing and no attempt is wasted.
///
/// The sign of a destination that is down is that *nothing* succeeds: failures in a row, over some time. Failures between
/// successes are those of single aggregates, which wait by their own schedules and must not make others wait (P6), so a
/// share of failures is a sign only where somebody says so. Refused events (class `rejected`) are no sign of trouble at
/// all: the destination works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BreakerPolicy {
    /// Failures in a row that open it, at least 1. One is enough of those that every event would meet (class
    /// `misconfigured`, a redirect).
    pub consecutive: u32,
    /// How long nothing must have succeeded, from the start of the first of these failures: many aggregates that fail
    /// together are tried within this time, and so are those behind them that do not fail.
    pub patience: Duration,
    /// Share of failures within `window` that opens it even between successes: above 0.0, up to 1.0.
    pub rate: Option<f64>,
    /// Attempts within `window` below which `rate` says nothing.
    pub minimum: u32,
    /// Time over which `rate` is taken.
    pub window: Duration,
    /// Time until the first probe; doubled after each failure of a probe that had not failed before, moved by ±20 % at
    /// random.
    pub cool_down: Duration,
    /// The longest that doubling makes of it.
    pub longest_cool_down: Duration,
}

impl Default for BreakerPolicy {
    /// Ten in a row is more than one bad aggregate can produce with eight attempts; in two seconds a destination that
    /// fails quickly is asked for thousands of aggregates. The rest are customary values of circuit breakers (at least
    /// twenty calls within half a minute; five seconds, at most a minute).
    fn default() -> Self {
        Self {
            consecutive: 10,
            patience: Duration::from_secs(2),
            rate: None,
            minimum: 20,
            window: Duration::from_secs(30),
            cool_down: Duration::from_secs(5),
            longest_cool_down: Duration::from_secs(60),
        }
    }
}

/// What an answer means, where a destination differs from what its status code usually says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// As good as a 2xx.
    Delivered,
    /// A failure of this class.
    Failed(FailureClass),
}

impl Treatment {
    /// The word for an answer that is as good as a 2xx.
    pub const DELIVERED: &'static str = "delivered";

    /// The word for it: that of its class, or [`Treatment::DELIVERED`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => Self::DELIVERED,
            Self::Failed(class) => class.as_str(),
        }
    }

    /// The one that `word` means, if there is one.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        if word == Self::DELIVERED {
            Some(Self::Delivered)
        } else {
            FailureClass::parse(word).map(Self::Failed)
        }
    }
}

/// Checks the name of a destination.
///
/// # Errors
/// What a name may be, when `name` is none.
pub fn check_name(name: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.is_empty() && name.len() <= bounds::MAX_NAME_CHARS && name.chars().all(fine) {
        return Ok(());
    }
    Err(format!("a name has 1 to {} letters, digits, \".\", \"_\" and \"-\"", bounds::MAX_NAME_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for name in ["a", "acme-1.eu_x", &"x".repeat(100)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "a b", "a/b", "ä", &"x".repeat(101)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
