//! The circuit breaker of one destination.
//!
//! *Closed*: attempts start freely. *Open*: none starts until the cool-down has passed. *Half open*: one attempt, the
//! probe, is in flight; its outcome alone decides whether the breaker closes or opens again for twice as long. Outcomes
//! of attempts that started before it opened say nothing about how the destination is now.

use std::time::Duration;

use super::{AttemptId, Moment};
use crate::destination::BreakerPolicy;

/// Parts of the window over which the failure rate is taken.
const SLICES: usize = 10;

/// Share by which a cool-down is moved at random, both ways, so that several relays do not probe together.
const JITTER: f64 = 0.2;

/// What an outcome says of the destination's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Good,
    Bad,
    /// Every event would fail in the same way.
    Hopeless,
    /// Nothing.
    Unknown,
}

/// Whether an attempt may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    Open,
    /// Not before then.
    Later(Moment),
    /// Not before an attempt in flight has ended or the destination was changed.
    Shut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Moment },
    HalfOpen { probe: Option<AttemptId> },
}

/// Outcomes of the last while, in slices of time.
#[derive(Debug, Clone, Copy, Default)]
struct Slice {
    number: u128,
    good: u32,
    bad: u32,
}

#[derive(Debug)]
pub(super) struct Breaker {
    policy: Option<BreakerPolicy>,
    state: State,
    /// Failures since the last success.
    streak: u32,
    slices: [Slice; SLICES],
    /// Times it opened since it was last closed.
    trips: u32,
}

impl Breaker {
    pub(super) fn new(policy: Option<BreakerPolicy>) -> Self {
        Self { policy, state: State::Closed, streak: 0, slices: [Slice::default(); SLICES], trips: 0 }
    }

    /// Takes over a new policy; a breaker that is open stays so.
    pub(super) fn set_policy(&mut self, policy: Option<BreakerPolicy>) {
        self.policy = policy;
        if policy.is_none() {
            self.close();
        }
    }

    pub(super) fn passage(&self, now: Moment) -> Passage {
        match self.state {
            State::Open { until } if now < until => Passage::Later(until),
            State::HalfOpen { probe: Some(_) } => Passage::Shut,
            State::Closed | State::Open { .. } | State::HalfOpen { probe: None } => Passage::Open,
        }
    }

    /// When the next probe may start, if it is open.
    pub(super) fn open_until(&self, now: Moment) -> Option<Moment> {
        match self.state {
            State::Open { until } if now < until => Some(until),
            _ => None,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    pub(super) fn started(&mut self, id: AttemptId) {
        if !self.is_closed() {
            self.state = State::HalfOpen { probe: Some(id) };
        }
    }

    /// The attempt ended with nothing to be learnt from it, or was cancelled.
    pub(super) fn withdrawn(&mut self, id: AttemptId) {
        if self.state == (State::HalfOpen { probe: Some(id) }) {
            self.state = State::HalfOpen { probe: None };
        }
    }

    /// `dice` is a uniform number in 0.0..1.0.
    pub(super) fn ended(&mut self, now: Moment, id: AttemptId, health: Health, dice: f64) {
        let Some(policy) = self.policy else { return };
        match (self.state, health) {
            (_, Health::Unknown) => self.withdrawn(id),
            (State::Closed, _) => {
                let failing = self.note(now, health, &policy);
                if failing || health == Health::Hopeless {
                    self.trip(now, &policy, dice);
                }
            }
            (State::HalfOpen { probe }, Health::Good) if probe == Some(id) => self.close(),
            (State::HalfOpen { probe }, _) if probe == Some(id) => self.trip(now, &policy, dice),
            (State::Open { .. } | State::HalfOpen { .. }, _) => {}
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.streak = 0;
        self.trips = 0;
        self.slices = [Slice::default(); SLICES];
    }

    fn trip(&mut self, now: Moment, policy: &BreakerPolicy, dice: f64) {
        let doubled = policy.cool_down.saturating_mul(1_u32 << self.trips.min(20));
        let pause = doubled.min(policy.longest_cool_down).mul_f64(1.0 + JITTER * (2.0 * dice - 1.0));
        self.state = State::Open { until: now + pause };
        self.trips += 1;
    }

    /// Counts an outcome. Whether there were too many failures by now.
    fn note(&mut self, now: Moment, health: Health, policy: &BreakerPolicy) -> bool {
        let width = (policy.window / u32::try_from(SLICES).unwrap_or(1)).max(Duration::from_millis(1));
        let number = now.as_nanos() / width.as_nanos();
        let place = usize::try_from(number % SLICES as u128).unwrap_or(0);
        if self.slices[place].number != number {
            self.slices[place] = Slice { number, ..Slice::default() };
        }
        if health == Health::Good {
            self.slices[place].good += 1;
            self.streak = 0;
            return false;
        }
        self.slices[place].bad += 1;
        self.streak += 1;
        let recent = self.slices.iter().filter(|slice| slice.number + SLICES as u128 > number);
        let (good, bad) =
            recent.fold((0_u32, 0_u32), |(good, bad), slice| (good + slice.good, bad + slice.bad));
        let total = good + bad;
        self.streak >= policy.consecutive
            || (total >= policy.minimum && f64::from(bad) >= policy.rate * f64::from(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker() -> Breaker {
        Breaker::new(Some(BreakerPolicy { consecutive: 3, minimum: 10, ..BreakerPolicy::default() }))
    }

    /// Failures and successes in turn.
    fn mixture(count: u64) -> impl Iterator<Item = (u64, Health)> {
        (0..count).zip([Health::Bad, Health::Good].into_iter().cycle())
    }

    fn end(breaker: &mut Breaker, now: Moment, id: u64, health: Health) {
        breaker.started(AttemptId(id));
        breaker.ended(now, AttemptId(id), health, 0.5);
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not_let_them_add_up() {
        let mut breaker = breaker();
        for health in [Health::Bad, Health::Bad, Health::Good, Health::Bad, Health::Bad] {
            end(&mut breaker, SECOND, 1, health);
            assert_eq!(breaker.passage(SECOND), Passage::Open);
        }
        end(&mut breaker, SECOND, 2, Health::Bad);
        assert_eq!(breaker.passage(SECOND), Passage::Later(6 * SECOND));
    }

    #[test]
    fn a_failure_rate_opens_it_once_there_are_enough_attempts() {
        let mut breaker = breaker();
        for (n, health) in mixture(9) {
            end(&mut breaker, SECOND, n, health);
            assert!(breaker.is_closed());
        }
        end(&mut breaker, SECOND, 10, Health::Bad);
        assert!(!breaker.is_closed());
    }

    #[test]
    fn failures_from_before_the_window_are_forgotten() {
        let mut breaker = breaker();
        for (n, health) in mixture(9) {
            end(&mut breaker, SECOND, n, health);
        }
        end(&mut breaker, 60 * SECOND, 10, Health::Bad);
        assert!(breaker.is_closed());
    }

    #[test]
    fn one_probe_alone_decides_after_the_cool_down() {
        let mut breaker = breaker();
        end(&mut breaker, SECOND, 1, Health::Hopeless);
        assert_eq!(breaker.passage(6 * SECOND), Passage::Open);
        breaker.started(AttemptId(2));
        assert_eq!(breaker.passage(6 * SECOND), Passage::Shut);
        breaker.ended(7 * SECOND, AttemptId(1), Health::Good, 0.5);
        assert_eq!(breaker.passage(7 * SECOND), Passage::Shut, "an old attempt decided");
        breaker.ended(7 * SECOND, AttemptId(2), Health::Bad, 0.5);
        assert_eq!(breaker.passage(7 * SECOND), Passage::Later(17 * SECOND), "twice as long");
        end(&mut breaker, 17 * SECOND, 3, Health::Good);
        assert!(breaker.is_closed());
    }

    #[test]
    fn the_cool_down_grows_no_longer_than_its_bound() {
        let mut breaker = breaker();
        let mut now = SECOND;
        for n in 0..40 {
            end(&mut breaker, now, n, Health::Hopeless);
            let Passage::Later(until) = breaker.passage(now) else { panic!("it is not open") };
            assert!(until - now <= 60 * SECOND);
            now = until;
        }
    }

    #[test]
    fn a_probe_that_was_cancelled_makes_room_for_another() {
        let mut breaker = breaker();
        end(&mut breaker, SECOND, 1, Health::Hopeless);
        breaker.started(AttemptId(2));
        breaker.withdrawn(AttemptId(2));
        assert_eq!(breaker.passage(7 * SECOND), Passage::Open);
    }

    #[test]
    fn without_a_policy_it_never_opens() {
        let mut breaker = Breaker::new(None);
        (0..100).for_each(|n| end(&mut breaker, SECOND, n, Health::Hopeless));
        assert!(breaker.is_closed());
    }
}
