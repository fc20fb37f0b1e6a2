//! How many attempts of one destination may be in flight, after it asked us to slow down.
//!
//! Additive increase, multiplicative decrease, as in TCP's congestion avoidance (RFC 5681): an answer 429 or 503 halves
//! what was in flight; each success raises it, by one up to the last known good half, then by one per round.

use super::AttemptId;

#[derive(Debug)]
pub(super) struct Throttle {
    /// Attempts that may be in flight, 1.0 up to the destination's concurrency.
    allowed: f64,
    /// Up to here each success allows one more.
    threshold: f64,
    /// Answers to attempts up to this one were already acted upon.
    slowed_at: AttemptId,
}

impl Throttle {
    pub(super) fn new() -> Self {
        Self { allowed: f64::INFINITY, threshold: f64::INFINITY, slowed_at: AttemptId(0) }
    }

    /// Attempts that may be in flight, at least 1.
    pub(super) fn allowed(&self, concurrency: usize) -> usize {
        if self.allowed >= concurrency as f64 {
            return concurrency;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is at least 1.0 and below a usize"
        )]
        let allowed = self.allowed as usize;
        allowed.max(1)
    }

    /// Attempt `id` was answered with the wish to slow down, with so many in flight at the time; `last` is the
    /// attempt that started last. Answers to what was already in flight then are the same wish.
    pub(super) fn slow_down(&mut self, id: AttemptId, in_flight: usize, last: AttemptId) {
        if id > self.slowed_at {
            self.allowed = self.allowed.min((in_flight as f64 / 2.0).max(1.0));
            self.threshold = self.allowed;
            self.slowed_at = last;
        }
    }

    /// After the destination was down: begins with one attempt at a time.
    pub(super) fn begin_anew(&mut self, concurrency: usize) {
        self.threshold = self.threshold.min(concurrency as f64);
        self.allowed = 1.0;
    }

    pub(super) fn succeeded(&mut self) {
        if self.allowed.is_finite() {
            self.allowed += if self.allowed < self.threshold { 1.0 } else { 1.0 / self.allowed };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_to_slow_down_halves_what_is_in_flight_once_per_round() {
        let mut throttle = Throttle::new();
        assert_eq!(throttle.allowed(64), 64);
        for id in 1..=64 {
            throttle.slow_down(AttemptId(id), 64, AttemptId(64));
        }
        assert_eq!(throttle.allowed(64), 32);
        throttle.slow_down(AttemptId(65), 32, AttemptId(96));
        assert_eq!(throttle.allowed(64), 16);
    }

    #[test]
    fn it_never_stops_altogether() {
        let mut throttle = Throttle::new();
        for id in 1..100 {
            throttle.slow_down(AttemptId(id), 1, AttemptId(id));
            assert_eq!(throttle.allowed(64), 1);
        }
    }

    #[test]
    fn successes_bring_it_back() {
        let mut throttle = Throttle::new();
        throttle.slow_down(AttemptId(1), 8, AttemptId(8));
        assert_eq!(throttle.allowed(8), 4);
        (0..4).for_each(|_| throttle.succeeded());
        assert_eq!(throttle.allowed(8), 4);
        (0..100).for_each(|_| throttle.succeeded());
        assert_eq!(throttle.allowed(8), 8);
    }

    #[test]
    fn after_an_outage_it_doubles_from_one() {
        let mut throttle = Throttle::new();
        throttle.begin_anew(64);
        for expected in [2, 4, 8, 16, 32, 64] {
            let round = throttle.allowed(64);
            (0..round).for_each(|_| throttle.succeeded());
            assert_eq!(throttle.allowed(64), expected);
        }
    }
}
