//! The rate limit of one destination: the generic cell rate algorithm in its virtual scheduling form.
//!
//! One number says everything: the moment at which the next attempt would be due if attempts were evenly spread. An
//! attempt may start when it is due, or earlier by what the burst allows.

use std::collections::HashMap;
use std::time::Duration;

use super::Moment;
use crate::destination::RateLimit;
use crate::event::{LaneId, SHARD_COUNT};

#[derive(Debug)]
pub(super) struct Pacer {
    limit: Option<RateLimit>,
    due: Moment,
}

impl Pacer {
    pub(super) fn new(limit: Option<RateLimit>) -> Self {
        Self { limit, due: Moment::ZERO }
    }

    pub(super) fn set_limit(&mut self, limit: Option<RateLimit>) {
        self.limit = limit;
    }

    /// When the next attempt may start, for a relay that owns so many of the shards: every relay takes that share of
    /// the limit, so that all together keep it.
    pub(super) fn ready_at(&self, now: Moment, shards: usize) -> Moment {
        let Some(limit) = self.limit else { return Moment::ZERO };
        let interval = interval(limit, shards);
        self.due(now, limit, shards).saturating_sub(interval.saturating_mul(burst(limit, shards) - 1))
    }

    pub(super) fn started(&mut self, now: Moment, shards: usize) {
        if let Some(limit) = self.limit {
            self.due = self.due(now, limit, shards).max(now) + interval(limit, shards);
        }
    }

    /// Never further ahead than a whole burst puts it: what a smaller share or a lower limit once meant does not count
    /// any more.
    fn due(&self, now: Moment, limit: RateLimit, shards: usize) -> Moment {
        self.due.min(now + interval(limit, shards).saturating_mul(burst(limit, shards)))
    }
}

/// Lanes of whose clocks the past ones are dropped at the earliest.
const SWEEP_LANES: usize = 1_024;

/// The rate limits of one destination's lanes, each a pacer of its own. A lane belongs to one relay, which so has all of
/// its limit.
///
/// A lane whose next attempt is due is as good as forgotten, so what is kept is at most twice the lanes that have started
/// an attempt within the time that a whole burst takes to come back.
#[derive(Debug)]
pub(super) struct LanePacers {
    limit: Option<RateLimit>,
    lanes: HashMap<LaneId, Pacer>,
    sweep_at: usize,
}

impl LanePacers {
    pub(super) fn new(limit: Option<RateLimit>) -> Self {
        Self { limit, lanes: HashMap::new(), sweep_at: SWEEP_LANES }
    }

    pub(super) fn set_limit(&mut self, limit: Option<RateLimit>) {
        self.limit = limit;
        self.lanes.values_mut().for_each(|lane| lane.set_limit(limit));
    }

    /// When the lane's next attempt may start.
    pub(super) fn ready_at(&self, now: Moment, lane: LaneId) -> Moment {
        self.lanes.get(&lane).map_or(Moment::ZERO, |pacer| pacer.ready_at(now, usize::from(SHARD_COUNT)))
    }

    pub(super) fn started(&mut self, now: Moment, lane: LaneId) {
        if self.limit.is_none() {
            return;
        }
        let pacer = self.lanes.entry(lane).or_insert_with(|| Pacer::new(self.limit));
        pacer.started(now, usize::from(SHARD_COUNT));
        if self.lanes.len() >= self.sweep_at {
            self.lanes.retain(|_, pacer| pacer.due > now);
            self.sweep_at = SWEEP_LANES.max(2 * self.lanes.len());
        }
    }
}

/// Attempts that a relay that owns so many of the shards may start at once.
fn burst(limit: RateLimit, shards: usize) -> u32 {
    let share = u64::from(limit.burst) * shards as u64 / u64::from(SHARD_COUNT);
    u32::try_from(share).unwrap_or(u32::MAX).max(1)
}

/// Time between two attempts of a relay that owns so many of the shards.
fn interval(limit: RateLimit, shards: usize) -> Duration {
    let share = f64::from(SHARD_COUNT) / shards.max(1) as f64;
    limit.per.mul_f64(share / f64::from(limit.count.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts that start within `lasts` when there is always one to start.
    fn starts(limit: RateLimit, shards: usize, lasts: Duration) -> u32 {
        let mut pacer = Pacer::new(Some(limit));
        let mut now = Moment::ZERO;
        let mut count = 0;
        loop {
            now = now.max(pacer.ready_at(now, shards));
            if now >= lasts {
                return count;
            }
            pacer.started(now, shards);
            count += 1;
        }
    }

    #[test]
    fn a_burst_is_followed_by_an_even_spread() {
        let limit = RateLimit { count: 10, per: Duration::from_secs(1), burst: 5 };
        assert_eq!(starts(limit, 64, Duration::from_millis(1)), 5);
        assert_eq!(starts(limit, 64, Duration::from_secs(10)), 104);
    }

    #[test]
    fn without_a_burst_the_first_second_has_no_more_than_any_other() {
        let limit = RateLimit { count: 10, per: Duration::from_secs(1), burst: 1 };
        assert_eq!(starts(limit, 64, Duration::from_secs(1)), 10);
    }

    #[test]
    fn relays_share_the_limit_as_they_share_the_shards() {
        let limit = RateLimit { count: 100, per: Duration::from_secs(1), burst: 1 };
        let all: u32 = [32, 16, 16].into_iter().map(|own| starts(limit, own, Duration::from_secs(10))).sum();
        assert_eq!(all, starts(limit, 64, Duration::from_secs(10)));
    }

    #[test]
    fn a_relay_that_takes_over_more_shards_waits_no_longer_than_its_new_share_asks() {
        let hour = Duration::from_secs(3_600);
        let mut pacer = Pacer::new(Some(RateLimit { count: 1, per: hour, burst: 1 }));
        pacer.started(Moment::ZERO, 16);
        assert_eq!(pacer.ready_at(Moment::ZERO, 16), 4 * hour);
        assert_eq!(pacer.ready_at(Moment::ZERO, 64), hour);
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut pacer = Pacer::new(None);
        pacer.started(Duration::from_secs(5), 64);
        assert_eq!(pacer.ready_at(Moment::ZERO, 64), Moment::ZERO);
    }

    #[test]
    fn each_lane_has_a_limit_of_its_own_and_past_ones_are_forgotten() {
        let limit = RateLimit { count: 1, per: Duration::from_secs(6), burst: 2 };
        let mut lanes = LanePacers::new(Some(limit));
        let second = Duration::from_secs(1);
        let now = 100 * second;
        lanes.started(now, 1);
        assert!(lanes.ready_at(now, 1) <= now, "the burst");
        lanes.started(now, 1);
        assert_eq!((lanes.ready_at(now, 1), lanes.ready_at(now, 2)), (now + 6 * second, Moment::ZERO));
        for lane in 0..10_000 {
            lanes.started(now + (13 + u32::try_from(lane).unwrap_or(0)) * second, lane);
        }
        assert!(lanes.lanes.len() <= SWEEP_LANES, "{}", lanes.lanes.len());
    }
}
