//! What the settings of a destination may be, wherever they are written.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Longest name of a destination, in characters: it is stored with every delivery.
pub const MAX_NAME_CHARS: usize = 100;

/// Attempts in flight at once.
pub const CONCURRENCY: RangeInclusive<usize> = 1..=10_000;

/// Longest time of one attempt.
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(300);

/// Attempts before giving up.
pub const ATTEMPTS: RangeInclusive<usize> = 1..=1_000;

/// The wait after a failed attempt.
pub const DELAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(30 * 86_400);

/// Share of a wait that is left to chance.
pub const JITTER: RangeInclusive<f64> = 0.0..=1.0;

/// Attempts of a rate limit, and its burst.
pub const RATE: RangeInclusive<usize> = 1..=1_000_000;

/// Time over which a rate limit counts.
pub const RATE_PER: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(86_400);

/// Share of failures that opens a breaker.
pub const BREAKER_RATE: RangeInclusive<f64> = 0.01..=1.0;

/// How long nothing must have succeeded before failures open a breaker.
pub const PATIENCE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(86_400);

/// Status codes that can be classed anew; a 2xx is always a delivery.
pub const STATUS_TO_CLASS: RangeInclusive<u16> = 300..=599;
