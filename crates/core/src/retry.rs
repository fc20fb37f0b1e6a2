//! The failure policy: what to do after an attempt that was not confirmed.

use std::time::Duration;

use crate::outcome::{Failure, FailureClass};

/// Bounds on a wait that a destination may ask for (`Retry-After`).
pub const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
/// See [`RETRY_AFTER_MIN`].
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Attempts for an event that the destination understood and refused.
pub const REJECTED_ATTEMPTS: u32 = 3;

/// What happens to the lane when the attempts of its head have run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExhausted {
    /// The head becomes a dead letter and the lane goes on.
    #[default]
    DeadLetter,
    /// The lane waits for an operator.
    HoldLane,
}

impl OnExhausted {
    /// Each with the word for it.
    pub const WORDS: [(&'static str, Self); 2] =
        [("dead_letter", Self::DeadLetter), ("hold_lane", Self::HoldLane)];
}

/// When and how often a delivery is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// Wait after the first, second, … failed attempt; the last one repeats. Not empty.
    pub delays: Vec<Duration>,
    /// Share of each delay by which it is moved at random, both ways: 0.0 to 1.0.
    pub jitter: f64,
    /// What happens when the attempts have run out.
    pub on_exhausted: OnExhausted,
}

impl Default for RetryPolicy {
    /// 8 attempts after 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, each ±20 %.
    fn default() -> Self {
        Self {
            attempts: 8,
            delays: [5, 30, 120, 600, 1_800, 7_200, 21_600].map(Duration::from_secs).to_vec(),
            jitter: 0.2,
            on_exhausted: OnExhausted::DeadLetter,
        }
    }
}

/// How often a delivery was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tries {
    /// Requests really started.
    pub attempts: u32,
    /// Those of them that were refused for a reason that lies neither in the event nor in the destination's health: a limit
    /// on how much may be sent, or a suspended account.
    pub uncounted: u32,
}

impl Tries {
    /// Attempts that count against those allowed.
    #[must_use]
    pub fn counted(self) -> u32 {
        self.attempts.saturating_sub(self.uncounted)
    }
}

/// What the policy decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Try again after this long.
    RetryIn(Duration),
    /// Give up; the lane goes on.
    DeadLetter,
    /// Keep it and hold its lane for an operator.
    Hold,
}

impl RetryPolicy {
    /// Whether an attempt that failed in this way does not count against those allowed.
    #[must_use]
    pub fn is_uncounted(class: FailureClass) -> bool {
        matches!(class, FailureClass::Throttled | FailureClass::Suspended)
    }

    /// Decides after a failed attempt; `tries` includes it.
    ///
    /// `dice` is a uniform number in 0.0..1.0 that places the delay inside its jitter.
    #[must_use]
    pub fn decide(&self, failure: &Failure, tries: Tries, dice: f64) -> Decision {
        let attempts = tries.counted();
        let limit = match failure.class {
            FailureClass::Permanent => return Decision::DeadLetter,
            FailureClass::Throttled => return Decision::RetryIn(throttled_wait(failure, tries.uncounted)),
            // Its destination is disabled; enabled again, it is to find everything where it was.
            FailureClass::Gone | FailureClass::Suspended => {
                return Decision::RetryIn(self.delay_after(attempts, dice));
            }
            FailureClass::Rejected => self.attempts.min(REJECTED_ATTEMPTS),
            FailureClass::Transient | FailureClass::Unknown | FailureClass::Misconfigured => self.attempts,
        };
        if attempts >= limit {
            return self.exhausted();
        }
        let scheduled = self.delay_after(attempts, dice);
        Decision::RetryIn(match failure.retry_after {
            Some(asked) => scheduled.max(asked.clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)),
            None => scheduled,
        })
    }

    /// What happens when the attempts have run out.
    #[must_use]
    pub fn exhausted(&self) -> Decision {
        match self.on_exhausted {
            OnExhausted::DeadLetter => Decision::DeadLetter,
            OnExhausted::HoldLane => Decision::Hold,
        }
    }

    /// The wait after failed attempt number `attempts` (1-based), placed inside its jitter by `dice` (0.0..1.0).
    #[must_use]
    pub fn delay_after(&self, attempts: u32, dice: f64) -> Duration {
        let step = (attempts.max(1) as usize - 1).min(self.delays.len().saturating_sub(1));
        let base = self.delays.get(step).copied().unwrap_or_default();
        base.mul_f64((1.0 + self.jitter * (2.0 * dice - 1.0)).max(0.0))
    }

    /// Longest time from the beginning of the first attempt to the end of the last one, when each takes all of its
    /// `timeout`. A destination that asks for longer waits, or a relay that stands still, is not in it.
    #[must_use]
    pub fn longest_span(&self, timeout: Duration) -> Duration {
        let waits = (1..self.attempts).map(|attempts| self.delay_after(attempts, 1.0));
        waits.fold(timeout.saturating_mul(self.attempts), Duration::saturating_add)
    }
}

/// How long what was refused by a limit for the `nth` time (from 1) waits: as long as it was asked to, and at least 4ⁿ
/// seconds. (Meta's rule for its limits: "Retry after 4^X seconds", WhatsApp Business Platform, Error codes, 131056.)
#[must_use]
pub fn throttled_wait(failure: &Failure, nth: u32) -> Duration {
    let backoff = Duration::from_secs(4_u64.saturating_pow(nth.max(1)));
    failure.retry_after.unwrap_or_default().max(backoff).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(attempts: u32) -> Tries {
        Tries { attempts, uncounted: 0 }
    }

    #[test]
    fn what_a_limit_refuses_waits_ever_longer_and_uses_nothing_up() {
        let policy = RetryPolicy { attempts: 2, jitter: 0.0, ..RetryPolicy::default() };
        let throttled = failure(FailureClass::Throttled);
        let wait = |n| policy.decide(&throttled, Tries { attempts: n, uncounted: n }, 0.5);
        assert_eq!(
            [wait(1), wait(2), wait(3)],
            [4, 16, 64].map(|s| Decision::RetryIn(Duration::from_secs(s)))
        );
        assert_eq!(wait(100), Decision::RetryIn(RETRY_AFTER_MAX));
        let asked = Failure { retry_after: Some(Duration::from_secs(90)), ..throttled };
        assert_eq!(throttled_wait(&asked, 1), Duration::from_secs(90));
        let later = Tries { attempts: 10, uncounted: 9 };
        assert_eq!(
            policy.decide(&failure(FailureClass::Transient), later, 0.5),
            Decision::RetryIn(Duration::from_secs(5)),
            "the first that counts"
        );
        assert!(matches!(policy.decide(&failure(FailureClass::Suspended), later, 0.5), Decision::RetryIn(_)));
    }

    fn failure(class: FailureClass) -> Failure {
        Failure::new(class, "answered 500")
    }

    #[test]
    fn the_longest_span_of_the_default_schedule_is_its_delays_at_full_jitter_and_its_timeouts() {
        let span = RetryPolicy::default().longest_span(Duration::from_secs(10));
        assert_eq!(span.as_secs(), (5 + 30 + 120 + 600 + 1_800 + 7_200 + 21_600) * 12 / 10 + 80);
        let once = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        assert_eq!(once.longest_span(Duration::from_secs(10)), Duration::from_secs(10));
    }

    #[test]
    fn the_default_schedule_gives_eight_attempts_over_its_seven_delays() {
        let policy = RetryPolicy::default();
        let secs: Vec<u64> = (1..8)
            .map(|n| match policy.decide(&failure(FailureClass::Transient), tries(n), 0.5) {
                Decision::RetryIn(delay) => delay.as_secs(),
                other => panic!("attempt {n} gave {other:?}"),
            })
            .collect();
        assert_eq!(secs, [5, 30, 120, 600, 1_800, 7_200, 21_600]);
        assert_eq!(policy.decide(&failure(FailureClass::Transient), tries(8), 0.5), Decision::DeadLetter);
    }

    #[test]
    fn jitter_moves_a_delay_by_at_most_its_share() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.delay_after(1, 0.0), Duration::from_secs(4));
        assert_eq!(policy.delay_after(1, 1.0), Duration::from_secs(6));
    }

    #[test]
    fn retry_after_lengthens_the_wait_but_never_shortens_it_and_is_clamped() {
        let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
        let ask = |secs| Failure {
            retry_after: Some(Duration::from_secs(secs)),
            ..failure(FailureClass::Transient)
        };
        assert_eq!(policy.decide(&ask(90), tries(1), 0.5), Decision::RetryIn(Duration::from_secs(90)));
        assert_eq!(policy.decide(&ask(1), tries(1), 0.5), Decision::RetryIn(Duration::from_secs(5)));
        assert_eq!(policy.decide(&ask(1_000_000), tries(1), 0.5), Decision::RetryIn(RETRY_AFTER_MAX));
    }

    #[test]
    fn each_class_ends_as_the_design_says() {
        let hold = RetryPolicy { on_exhausted: OnExhausted::HoldLane, ..RetryPolicy::default() };
        let policy = RetryPolicy::default();
        assert_eq!(policy.decide(&failure(FailureClass::Permanent), tries(1), 0.5), Decision::DeadLetter);
        assert!(matches!(policy.decide(&failure(FailureClass::Gone), tries(100), 0.5), Decision::RetryIn(_)));
        assert_eq!(policy.decide(&failure(FailureClass::Rejected), tries(3), 0.5), Decision::DeadLetter);
        assert_eq!(hold.decide(&failure(FailureClass::Unknown), tries(8), 0.5), Decision::Hold);
        assert!(matches!(
            policy.decide(&failure(FailureClass::Misconfigured), tries(7), 0.5),
            Decision::RetryIn(_)
        ));
    }
}
