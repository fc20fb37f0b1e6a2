//! Whether an attempt to one destination may start: its switch, its breaker, its pause, its rate and its concurrency.
//!
//! Waiting at the gate costs no attempt (P4). What waits there stays where it is stored; the gates of other destinations
//! know nothing of it (P6).

use std::time::Duration;

use super::breaker::{Breaker, Health, Passage};
use super::pacer::Pacer;
use super::throttle::Throttle;
use super::{AttemptId, Moment};
use crate::destination::Destination;
use crate::outcome::{Failure, FailureClass, Outcome, Scope};
use crate::retry::throttled_wait;

/// Longest time for which one answer's `Retry-After` keeps a whole destination waiting. The delivery that was
/// answered so waits as long as it says; but what was meant for one of them must not stop all others for a day.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Longest wait for a rate limit that a single run sits out.
const WORTH_WAITING: Duration = Duration::from_secs(10);

/// What became of the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Opened,
    Closed,
}

#[derive(Debug)]
pub(super) struct Gate {
    disabled: Option<String>,
    breaker: Breaker,
    pacer: Pacer,
    throttle: Throttle,
    concurrency: usize,
    paused_until: Moment,
    /// What the last failure was, for people.
    last_failure: String,
}

impl Gate {
    pub(super) fn new(spec: &Destination) -> Self {
        Self {
            disabled: spec.disabled.clone(),
            breaker: Breaker::new(spec.breaker),
            pacer: Pacer::new(spec.rate),
            throttle: Throttle::new(),
            concurrency: spec.concurrency,
            paused_until: Moment::ZERO,
            last_failure: String::new(),
        }
    }

    /// Takes over changed settings; what is known of the destination's health stays.
    pub(super) fn set(&mut self, spec: &Destination) {
        self.disabled.clone_from(&spec.disabled);
        self.breaker.set_policy(spec.breaker);
        self.pacer.set_limit(spec.rate);
        self.concurrency = spec.concurrency;
    }

    pub(super) fn disable(&mut self, reason: String) {
        self.disabled = Some(reason);
    }

    /// A limit was met that holds for everything that goes there: nothing starts for as long as it asks, or for the
    /// shortest time that such limits last.
    pub(super) fn pause(&mut self, now: Moment, failure: &Failure) {
        self.last_failure.clone_from(&failure.reason);
        self.paused_until = self.paused_until.max(now + throttled_wait(failure, 1));
    }

    /// Whether an attempt may start with so many in flight, for a relay that owns so many shards.
    pub(super) fn passage(&self, now: Moment, in_flight: usize, shards: usize) -> Passage {
        if self.disabled.is_some() || in_flight >= self.throttle.allowed(self.concurrency) {
            return Passage::Shut;
        }
        let passage = self.breaker.passage(now);
        if passage != Passage::Open {
            return passage;
        }
        let ready_at = self.paused_until.max(self.pacer.ready_at(now, shards));
        if ready_at > now { Passage::Later(ready_at) } else { Passage::Open }
    }

    /// Whether the next attempt is a probe, best made with a delivery that has not failed before.
    pub(super) fn is_probing(&self) -> bool {
        !self.breaker.is_closed()
    }

    /// An attempt starts; `fresh`: its delivery has not failed before.
    pub(super) fn started(&mut self, now: Moment, id: AttemptId, fresh: bool, shards: usize) {
        self.breaker.started(id, fresh);
        self.pacer.started(now, shards);
    }

    pub(super) fn cancelled(&mut self, id: AttemptId) {
        self.breaker.withdrawn(id);
    }

    /// An attempt ended, with so many in flight before that; `last` is the attempt that started last. Tells whether the
    /// breaker opened or closed.
    pub(super) fn ended(
        &mut self,
        now: Moment,
        id: AttemptId,
        outcome: &Outcome,
        took: Duration,
        (in_flight, last): (usize, AttemptId),
        dice: f64,
    ) -> Option<Turn> {
        let health = match outcome {
            Outcome::Delivered(_) => Health::Good,
            Outcome::NotStarted(_) => Health::Unknown,
            Outcome::Failed(failure) => {
                self.last_failure.clone_from(&failure.reason);
                let asked =
                    matches!(failure.status, Some(429 | 503)) && failure.class == FailureClass::Transient;
                let limited = failure.class == FailureClass::Throttled && failure.scope != Scope::Lane;
                if asked {
                    let pause = failure.retry_after.unwrap_or_default().min(LONGEST_PAUSE);
                    self.paused_until = self.paused_until.max(now + pause);
                }
                if limited {
                    self.pause(now, failure);
                }
                if asked || limited {
                    self.throttle.slow_down(id, in_flight, last);
                }
                health_of(failure)
            }
        };
        let was_closed = self.breaker.is_closed();
        self.breaker.ended(now, id, health, took, dice);
        match (was_closed, self.breaker.is_closed()) {
            (false, true) => {
                self.throttle.begin_anew(self.concurrency);
                return Some(Turn::Closed);
            }
            (true, false) => return Some(Turn::Opened),
            _ if health == Health::Good => self.throttle.succeeded(),
            _ => {}
        }
        None
    }

    /// Nothing is going to start for a while, whatever ends: waiting for it would be waiting for the destination.
    pub(super) fn is_blocked(&self, now: Moment) -> bool {
        self.disabled.is_some() || self.breaker.open_until(now).is_some() || self.paused_until > now
    }

    /// Nothing is going to start for so long that a single run does not wait for it.
    pub(super) fn is_stalled(&self, now: Moment, shards: usize) -> bool {
        self.is_blocked(now) || self.pacer.ready_at(now, shards) > now + WORTH_WAITING
    }

    /// Why nothing is sent at present, for people; `None` when something is.
    pub(super) fn why_blocked(&self, now: Moment, shards: usize) -> Option<String> {
        if let Some(reason) = &self.disabled {
            return Some(format!("disabled: {reason}"));
        }
        if let Some(until) = self.breaker.open_until(now) {
            let left = (until - now).as_secs() + 1;
            return Some(format!("breaker open, next probe in {left} s: {}", self.last_failure));
        }
        if let Some(left) = self.paused_until.checked_sub(now).filter(|left| !left.is_zero()) {
            return Some(format!("asked to wait {} s: {}", left.as_secs() + 1, self.last_failure));
        }
        let left = self.pacer.ready_at(now, shards).checked_sub(now).filter(|left| *left > WORTH_WAITING)?;
        Some(format!("its rate limit allows the next attempt in {} s", left.as_secs() + 1))
    }
}

/// What a failure says of its destination. A redirect is one for every event, while what is permanent without an answer
/// or with another one is about its event.
fn health_of(failure: &Failure) -> Health {
    match failure.class {
        FailureClass::Transient | FailureClass::Unknown => Health::Bad,
        FailureClass::Misconfigured | FailureClass::Gone | FailureClass::Suspended => Health::Hopeless,
        FailureClass::Permanent if matches!(failure.status, Some(300..=399)) => Health::Hopeless,
        FailureClass::Permanent => Health::Unknown,
        FailureClass::Rejected | FailureClass::Throttled => Health::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::RateLimit;
    use crate::outcome::Confirmation;
    use crate::route::Route;

    const SECOND: Duration = Duration::from_secs(1);

    /// Late enough for an attempt to have begun long before.
    const NOW: Moment = Duration::from_secs(10);

    fn failed(class: FailureClass, status: u16, retry_after: Option<Duration>) -> Outcome {
        Outcome::Failed(Failure { status: Some(status), retry_after, ..Failure::new(class, "it said no") })
    }

    fn end(gate: &mut Gate, now: Moment, id: u64, outcome: &Outcome) {
        gate.started(now, AttemptId(id), true, 64);
        gate.ended(now, AttemptId(id), outcome, 3 * SECOND, (1, AttemptId(id)), 0.5);
    }

    #[test]
    fn retry_after_of_a_429_keeps_the_whole_destination_waiting_but_never_for_long() {
        let mut gate = Gate::new(&Destination::new("billing", Route::default()));
        end(&mut gate, SECOND, 1, &failed(FailureClass::Transient, 429, Some(9 * SECOND)));
        assert_eq!(gate.passage(SECOND, 0, 64), Passage::Later(10 * SECOND));
        assert_eq!(gate.why_blocked(SECOND, 64).unwrap(), "asked to wait 10 s: it said no");
        end(&mut gate, SECOND, 2, &failed(FailureClass::Transient, 503, Some(86_400 * SECOND)));
        assert_eq!(gate.passage(SECOND, 0, 64), Passage::Later(61 * SECOND));
        assert!(!gate.is_blocked(61 * SECOND));
    }

    #[test]
    fn a_misconfigured_destination_is_left_alone_at_its_first_such_answer_after_a_while_and_a_refused_event_is_no_reason()
     {
        let mut gate = Gate::new(&Destination::new("billing", Route::default()));
        (0..100).for_each(|n| end(&mut gate, SECOND, n, &failed(FailureClass::Rejected, 422, None)));
        assert_eq!(gate.passage(SECOND, 0, 64), Passage::Open);
        end(&mut gate, NOW, 100, &failed(FailureClass::Misconfigured, 401, None));
        assert_eq!(gate.passage(NOW, 0, 64), Passage::Later(NOW + 5 * SECOND));
    }

    #[test]
    fn what_is_wrong_with_one_event_is_not_held_against_its_destination_but_a_redirect_is() {
        let mut gate = Gate::new(&Destination::new("billing", Route::default()));
        let unsendable = Outcome::Failed(Failure::new(FailureClass::Permanent, "payload too large"));
        (0..100).for_each(|n| end(&mut gate, NOW, n, &unsendable));
        assert_eq!(gate.passage(NOW, 0, 64), Passage::Open);
        end(&mut gate, NOW, 100, &failed(FailureClass::Permanent, 302, None));
        assert_ne!(gate.passage(NOW, 0, 64), Passage::Open);
    }

    #[test]
    fn a_recovered_destination_is_approached_slowly() {
        let mut gate = Gate::new(&Destination::new("billing", Route::default()));
        end(&mut gate, NOW, 1, &failed(FailureClass::Misconfigured, 404, None));
        end(&mut gate, NOW + 5 * SECOND, 2, &Outcome::Delivered(Confirmation::default()));
        assert_eq!(gate.passage(NOW + 5 * SECOND, 0, 64), Passage::Open);
        assert_eq!(gate.passage(NOW + 5 * SECOND, 1, 64), Passage::Shut);
    }

    #[test]
    fn a_disabled_destination_opens_only_when_it_is_enabled() {
        let spec = Destination::new("billing", Route::default());
        let mut gate = Gate::new(&Destination { disabled: Some("paid late".into()), ..spec.clone() });
        assert_eq!(gate.passage(SECOND, 0, 64), Passage::Shut);
        assert_eq!(gate.why_blocked(SECOND, 64).unwrap(), "disabled: paid late");
        gate.set(&spec);
        assert_eq!(gate.passage(SECOND, 0, 64), Passage::Open);
    }

    #[test]
    fn the_rate_limit_is_told_as_a_moment() {
        let rate = Some(RateLimit { count: 2, per: SECOND, burst: 1 });
        let mut gate = Gate::new(&Destination { rate, ..Destination::new("billing", Route::default()) });
        end(&mut gate, SECOND, 1, &Outcome::Delivered(Confirmation::default()));
        assert_eq!(gate.passage(SECOND, 0, 64), Passage::Later(SECOND + SECOND / 2));
        assert!(!gate.is_stalled(SECOND, 64), "it will go on by itself");
        let rate = Some(RateLimit { count: 1, per: 3_600 * SECOND, burst: 1 });
        let mut gate = Gate::new(&Destination { rate, ..Destination::new("billing", Route::default()) });
        end(&mut gate, SECOND, 1, &Outcome::Delivered(Confirmation::default()));
        assert!(gate.is_stalled(SECOND, 64) && !gate.is_blocked(SECOND));
        assert!(gate.why_blocked(SECOND, 64).unwrap().contains("rate limit"));
    }

    #[test]
    fn an_answer_that_means_something_else_here_slows_nothing_down() {
        let mut gate = Gate::new(&Destination::new("billing", Route::default()));
        end(&mut gate, NOW, 1, &failed(FailureClass::Rejected, 503, Some(9 * SECOND)));
        assert_eq!(gate.passage(NOW, 2, 64), Passage::Open);
    }
}
