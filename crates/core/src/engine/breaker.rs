//! The circuit breaker of one destination.
//!
//! *Closed*: attempts start freely. *Open*: none starts until the cool-down has passed. *Half open*: one attempt, the
//! probe, is in flight; its outcome alone decides whether the breaker closes or opens again. Outcomes of attempts that
//! started before it opened say nothing about how the destination is now.
//!
//! A probe is best made with a delivery that has not failed before (*fresh*): only its failure says something new of the
//! destination, and doubles the cool-down. One that failed before may fail for reasons of its own.

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
    HalfOpen { probe: Option<Probe> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Probe {
    id: AttemptId,
    fresh: bool,
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
    /// When the first of these began, or the last success ended if that was later.
    failing_since: Moment,
    last_good: Moment,
    /// The probe that closed it last: what started before says nothing any more.
    closed_by: Option<AttemptId>,
    slices: [Slice; SLICES],
    /// Times it opened since it was last closed.
    trips: u32,
}

impl Breaker {
    pub(super) fn new(policy: Option<BreakerPolicy>) -> Self {
        Self {
            policy,
            state: State::Closed,
            streak: 0,
            failing_since: Moment::ZERO,
            last_good: Moment::ZERO,
            closed_by: None,
            slices: [Slice::default(); SLICES],
            trips: 0,
        }
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

    /// `fresh`: the delivery has not failed before.
    pub(super) fn started(&mut self, id: AttemptId, fresh: bool) {
        if !self.is_closed() {
            self.state = State::HalfOpen { probe: Some(Probe { id, fresh }) };
        }
    }

    /// The attempt ended with nothing to be learnt from it, or was cancelled.
    pub(super) fn withdrawn(&mut self, id: AttemptId) {
        if self.probe(id).is_some() {
            self.state = State::HalfOpen { probe: None };
        }
    }

    fn probe(&self, id: AttemptId) -> Option<Probe> {
        match self.state {
            State::HalfOpen { probe } => probe.filter(|probe| probe.id == id),
            State::Closed | State::Open { .. } => None,
        }
    }

    /// An attempt that took so long ended. `dice` is a uniform number in 0.0..1.0.
    pub(super) fn ended(&mut self, now: Moment, id: AttemptId, health: Health, took: Duration, dice: f64) {
        let Some(policy) = self.policy else { return };
        if health == Health::Unknown {
            self.withdrawn(id);
        } else if self.is_closed() {
            if self.closed_by.is_none_or(|probe| id > probe) && self.note(now, health, took, &policy) {
                self.trips = 1;
                self.open(now, &policy, dice);
            }
        } else if let Some(probe) = self.probe(id) {
            if health == Health::Good {
                self.close();
                self.closed_by = Some(id);
                self.last_good = now;
            } else {
                self.trips += u32::from(probe.fresh);
                self.open(now, &policy, dice);
            }
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.streak = 0;
        self.trips = 0;
        self.slices = [Slice::default(); SLICES];
    }

    fn open(&mut self, now: Moment, policy: &BreakerPolicy, dice: f64) {
        let doubled = policy.cool_down.saturating_mul(1_u32 << (self.trips - 1).min(20));
        let longest = policy.longest_cool_down.max(policy.cool_down);
        let pause = doubled.mul_f64(1.0 + JITTER * (2.0 * dice - 1.0)).min(longest);
        self.state = State::Open { until: now + pause };
    }

    /// Counts an outcome. Whether there were too many failures by now.
    fn note(&mut self, now: Moment, health: Health, took: Duration, policy: &BreakerPolicy) -> bool {
        let width = (policy.window / u32::try_from(SLICES).unwrap_or(1)).max(Duration::from_millis(1));
        let number = now.as_nanos() / width.as_nanos();
        let place = usize::try_from(number % SLICES as u128).unwrap_or(0);
        if self.slices[place].number != number {
            self.slices[place] = Slice { number, ..Slice::default() };
        }
        if health == Health::Good {
            self.slices[place].good += 1;
            self.streak = 0;
            self.last_good = now;
            return false;
        }
        self.slices[place].bad += 1;
        if self.streak == 0 {
            self.failing_since = now.saturating_sub(took).max(self.last_good);
        }
        self.streak += 1;
        let enough = self.streak >= policy.consecutive || health == Health::Hopeless;
        (enough && now - self.failing_since >= policy.patience)
            || policy.rate.is_some_and(|rate| self.fails_often(number, rate, policy.minimum))
    }

    fn fails_often(&self, number: u128, rate: f64, minimum: u32) -> bool {
        let recent = self.slices.iter().filter(|slice| slice.number + SLICES as u128 > number);
        let (good, bad) =
            recent.fold((0_u32, 0_u32), |(good, bad), slice| (good + slice.good, bad + slice.bad));
        let total = good + bad;
        total >= minimum && f64::from(bad) >= rate * f64::from(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker() -> Breaker {
        Breaker::new(Some(BreakerPolicy { consecutive: 3, patience: SECOND, ..BreakerPolicy::default() }))
    }

    /// An attempt that takes no time.
    fn end(breaker: &mut Breaker, now: Moment, id: u64, health: Health) {
        attempt(breaker, now, id, health, true);
    }

    fn attempt(breaker: &mut Breaker, now: Moment, id: u64, health: Health, fresh: bool) {
        breaker.started(AttemptId(id), fresh);
        breaker.ended(now, AttemptId(id), health, Duration::ZERO, 0.5);
    }

    #[test]
    fn failures_in_a_row_open_it_once_nothing_has_succeeded_for_a_while() {
        let mut breaker = breaker();
        (0..100).for_each(|n| end(&mut breaker, SECOND, n, Health::Bad));
        assert_eq!(breaker.passage(SECOND), Passage::Open, "what is behind them was not tried yet");
        end(&mut breaker, 2 * SECOND, 100, Health::Bad);
        assert_eq!(breaker.passage(2 * SECOND), Passage::Later(7 * SECOND));
    }

    #[test]
    fn the_time_counts_from_the_start_of_the_first_failure() {
        let mut breaker = breaker();
        for n in 0..3 {
            assert!(breaker.is_closed());
            breaker.started(AttemptId(n), true);
            breaker.ended(10 * SECOND, AttemptId(n), Health::Bad, 10 * SECOND, 0.5);
        }
        assert!(!breaker.is_closed());
    }

    #[test]
    fn failures_between_successes_are_those_of_single_aggregates() {
        let mut breaker = breaker();
        for round in 0..100 {
            for health in [Health::Bad, Health::Hopeless, Health::Good] {
                end(&mut breaker, SECOND * round / 10, 1, health);
                assert!(breaker.is_closed());
            }
        }
    }

    #[test]
    fn what_every_event_would_meet_opens_it_at_the_first_failure_after_that_time() {
        let mut breaker = breaker();
        end(&mut breaker, SECOND, 1, Health::Hopeless);
        assert!(breaker.is_closed());
        end(&mut breaker, 2 * SECOND, 2, Health::Hopeless);
        assert!(!breaker.is_closed());
    }

    #[test]
    fn a_failure_rate_opens_it_where_one_is_given() {
        let rated = BreakerPolicy { rate: Some(0.5), minimum: 10, ..BreakerPolicy::default() };
        let mut breaker = Breaker::new(Some(rated));
        let mixture = || [Health::Bad, Health::Good].into_iter().cycle();
        for (n, health) in (0..9).zip(mixture()) {
            end(&mut breaker, SECOND, n, health);
            assert!(breaker.is_closed());
        }
        let mut later = Breaker::new(Some(rated));
        (0..9).zip(mixture()).for_each(|(n, health)| end(&mut later, SECOND, n, health));
        end(&mut breaker, SECOND, 10, Health::Bad);
        assert!(!breaker.is_closed());
        end(&mut later, 60 * SECOND, 10, Health::Bad);
        assert!(later.is_closed(), "failures from before the window were counted");
    }

    /// A breaker that opened at 2 s, for five seconds.
    fn opened() -> Breaker {
        let mut breaker = breaker();
        (1..=3).for_each(|n| end(&mut breaker, SECOND, n, Health::Bad));
        end(&mut breaker, 2 * SECOND, 4, Health::Bad);
        assert_eq!(breaker.passage(2 * SECOND), Passage::Later(7 * SECOND));
        breaker
    }

    #[test]
    fn one_probe_alone_decides_after_the_cool_down() {
        let mut breaker = opened();
        assert_eq!(breaker.passage(7 * SECOND), Passage::Open);
        breaker.started(AttemptId(12), true);
        assert_eq!(breaker.passage(7 * SECOND), Passage::Shut);
        breaker.ended(8 * SECOND, AttemptId(1), Health::Good, Duration::ZERO, 0.5);
        assert_eq!(breaker.passage(8 * SECOND), Passage::Shut, "an old attempt decided");
        breaker.ended(8 * SECOND, AttemptId(12), Health::Bad, Duration::ZERO, 0.5);
        assert_eq!(breaker.passage(8 * SECOND), Passage::Later(18 * SECOND), "twice as long");
        end(&mut breaker, 18 * SECOND, 13, Health::Good);
        assert!(breaker.is_closed());
    }

    #[test]
    fn a_probe_that_had_failed_before_makes_the_cool_down_no_longer() {
        let mut breaker = opened();
        attempt(&mut breaker, 7 * SECOND, 12, Health::Bad, false);
        assert_eq!(breaker.passage(7 * SECOND), Passage::Later(12 * SECOND));
    }

    #[test]
    fn the_cool_down_grows_no_longer_than_its_bound() {
        let mut breaker = opened();
        let mut now = 7 * SECOND;
        for n in 0..40 {
            end(&mut breaker, now, n, Health::Hopeless);
            let Passage::Later(until) = breaker.passage(now) else { panic!("it is not open") };
            assert!(until - now <= 60 * SECOND);
            now = until;
        }
    }

    #[test]
    fn a_probe_that_was_cancelled_makes_room_for_another() {
        let mut breaker = opened();
        breaker.started(AttemptId(12), true);
        breaker.withdrawn(AttemptId(12));
        assert_eq!(breaker.passage(7 * SECOND), Passage::Open);
    }

    #[test]
    fn attempts_that_hang_beside_others_that_succeed_do_not_open_it() {
        let mut breaker = Breaker::new(Some(BreakerPolicy::default()));
        (1..12).for_each(|n| breaker.started(AttemptId(n), true));
        breaker.ended(SECOND * 99 / 10, AttemptId(11), Health::Good, Duration::ZERO, 0.5);
        (1..11).for_each(|n| breaker.ended(SECOND * 10, AttemptId(n), Health::Bad, SECOND * 10, 0.5));
        assert!(breaker.is_closed(), "the last success was a tenth of a second ago");
    }

    #[test]
    fn attempts_from_before_it_opened_do_not_open_it_again_after_a_good_probe() {
        let mut breaker = Breaker::new(Some(BreakerPolicy::default()));
        (1..31).for_each(|n| breaker.started(AttemptId(n), true));
        (1..11).for_each(|n| breaker.ended(SECOND * 10, AttemptId(n), Health::Bad, SECOND * 10, 0.5));
        assert!(!breaker.is_closed());
        end(&mut breaker, SECOND * 15, 40, Health::Good);
        (11..31).for_each(|n| breaker.ended(SECOND * 18, AttemptId(n), Health::Bad, SECOND * 18, 0.5));
        assert!(breaker.is_closed());
    }

    #[test]
    fn a_cool_down_longer_than_the_longest_is_kept_as_it_is() {
        let policy = BreakerPolicy { cool_down: 300 * SECOND, ..BreakerPolicy::default() };
        let mut breaker = Breaker::new(Some(policy));
        breaker.started(AttemptId(1), true);
        breaker.ended(10 * SECOND, AttemptId(1), Health::Hopeless, 3 * SECOND, 0.5);
        assert_eq!(breaker.passage(10 * SECOND), Passage::Later(310 * SECOND));
    }

    #[test]
    fn without_a_policy_it_never_opens() {
        let mut breaker = Breaker::new(None);
        (0..100).for_each(|n| end(&mut breaker, SECOND * 10, n, Health::Hopeless));
        assert!(breaker.is_closed());
    }
}
