//! Which answer a request gets.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use crate::dice::Dice;
use crate::receiver::Answer;

/// How requests are answered.
#[derive(Debug, Clone)]
pub(crate) struct Mood {
    /// What a request gets that fails.
    pub(crate) failure: Failure,
    /// Which ones fail.
    pub(crate) which: Which,
    /// How long every answer takes.
    pub(crate) delay: Duration,
    /// How long the sender is asked to wait after a failure.
    pub(crate) retry_after: Option<Duration>,
}

/// What happens to a request that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It gets this status, which may be one of success.
    Status(StatusCode),
    /// It gets no answer.
    Hang,
}

/// The requests that fail.
#[derive(Debug, Clone)]
pub(crate) enum Which {
    None,
    All,
    /// So many from the start.
    First(u64),
    /// Each with this probability.
    Some(f64, Dice),
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Status(StatusCode),
    Hang,
}

impl Mood {
    /// Decides about the next request.
    pub(super) fn decide(&mut self) -> Decision {
        let fails = match &mut self.which {
            Which::None => false,
            Which::All => true,
            Which::First(0) => false,
            Which::First(left) => {
                *left -= 1;
                true
            }
            Which::Some(probability, dice) => dice.falls_within(*probability),
        };
        match (fails, self.failure) {
            (false, _) => Decision::Status(StatusCode::OK),
            (true, Failure::Status(status)) => Decision::Status(status),
            (true, Failure::Hang) => Decision::Hang,
        }
    }

    pub(super) fn answer(&self, decision: Decision) -> Answer {
        let status = match decision {
            Decision::Hang => return Answer::Never,
            Decision::Status(status) => status,
        };
        let wait = self.retry_after.filter(|_| !status.is_success());
        // Whole seconds, and never less than was asked for.
        let seconds = wait.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        let headers = seconds.map(|seconds| (RETRY_AFTER, HeaderValue::from(seconds)));
        Answer::Given { status, headers: headers.into_iter().collect(), body: String::new() }
    }
}

impl Decision {
    /// Whether the event counts as accepted.
    pub(super) fn accepts(self) -> bool {
        matches!(self, Self::Status(status) if status.is_success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mood(which: Which) -> Mood {
        let failure = Failure::Status(StatusCode::SERVICE_UNAVAILABLE);
        Mood { failure, which, delay: Duration::ZERO, retry_after: Some(Duration::from_millis(1_500)) }
    }

    fn failures(which: Which, requests: usize) -> usize {
        let mut mood = mood(which);
        (0..requests).filter(|_| !mood.decide().accepts()).count()
    }

    #[test]
    fn exactly_the_chosen_requests_fail() {
        assert_eq!(failures(Which::None, 100), 0);
        assert_eq!(failures(Which::All, 100), 100);
        assert_eq!(failures(Which::First(3), 100), 3);
        assert_eq!(failures(Which::Some(0.0, Dice::new(1)), 1_000), 0);
        assert_eq!(failures(Which::Some(1.0, Dice::new(1)), 1_000), 1_000);
        let some = failures(Which::Some(0.1, Dice::new(1)), 10_000);
        assert!((800..1_200).contains(&some), "{some}");
    }

    #[test]
    fn only_a_failure_asks_to_wait_and_in_whole_seconds() {
        let mood = mood(Which::None);
        let wait = |status| match mood.answer(Decision::Status(status)) {
            Answer::Given { headers, .. } => headers.first().map(|(_, value)| value.clone()),
            other => panic!("{other:?}"),
        };
        assert_eq!(wait(StatusCode::SERVICE_UNAVAILABLE).unwrap(), "2");
        assert_eq!(wait(StatusCode::OK), None);
    }
}
