//! The sum of it all.

use std::collections::BTreeMap;

use serde::Serialize;

use super::line::Signature;
use super::memory::Mark;
use super::mood::Decision;

/// Counts of everything that came in.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Tally {
    /// Requests that carried an event.
    requests: u64,
    /// Of these, answered 2xx for the first time.
    accepted: u64,
    /// Of these, accepted before.
    duplicates: u64,
    /// Of these, before or after their turn.
    out_of_order: u64,
    /// Of these, with a signature that does not fit.
    not_verified: u64,
    /// Of these, left without an answer.
    without_answer: u64,
    /// Requests that carried no event.
    unreadable: u64,
    /// Answers given, by status.
    statuses: BTreeMap<u16, u64>,
}

impl Tally {
    pub(super) fn count(&mut self, decision: Decision, signature: &Signature, mark: Mark) {
        self.requests += 1;
        match decision {
            Decision::Status(status) => *self.statuses.entry(status.as_u16()).or_default() += 1,
            Decision::Hang => self.without_answer += 1,
        }
        match mark {
            Mark::Duplicate => self.duplicates += 1,
            Mark::Gap(_) | Mark::Stale(_) => self.out_of_order += 1,
            Mark::Fine => {}
        }
        self.accepted += u64::from(decision.accepts() && mark != Mark::Duplicate);
        self.not_verified += u64::from(matches!(signature, Signature::Refused(_)));
    }

    pub(super) fn count_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// The counts for people.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "\nrequests: {}, events accepted: {}, duplicates: {}, out of order: {}, not verified: {}",
            self.requests, self.accepted, self.duplicates, self.out_of_order, self.not_verified
        );
        if self.unreadable > 0 {
            text += &format!(", without an event: {}", self.unreadable);
        }
        let answers: Vec<String> =
            self.statuses.iter().map(|(status, count)| format!("{count} × {status}")).collect();
        if !answers.is_empty() {
            text += &format!("\nanswered: {}", answers.join(", "));
        }
        if self.without_answer > 0 {
            text += &format!("\nnot answered: {}", self.without_answer);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn everything_is_counted_once() {
        let mut tally = Tally::default();
        let ok = Decision::Status(StatusCode::OK);
        tally.count(ok, &Signature::Verified, Mark::Fine);
        tally.count(ok, &Signature::Verified, Mark::Duplicate);
        tally.count(ok, &Signature::Verified, Mark::Gap(2));
        tally.count(
            Decision::Status(StatusCode::UNAUTHORIZED),
            &Signature::Refused(String::new()),
            Mark::Fine,
        );
        tally.count(Decision::Hang, &Signature::Unchecked, Mark::Fine);
        tally.count_unreadable();
        assert_eq!(
            tally.text(),
            "\nrequests: 5, events accepted: 2, duplicates: 1, out of order: 1, not verified: 1, without an event: 1\n\
             answered: 3 × 200, 1 × 401\nnot answered: 1"
        );
    }
}
