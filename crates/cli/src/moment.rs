//! Points in time as people write them on a command line.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, civil};

use crate::config::parse_duration;

/// Reads `2026-01-31T10:15:00Z`, `2026-01-31 10:15` and `2026-01-31` (both UTC), or `2h`: that long ago.
///
/// # Errors
/// One line that names the accepted forms.
pub(crate) fn parse_moment(text: &str) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    let civil = text.parse::<civil::DateTime>().ok().and_then(|civil| TimeZone::UTC.to_timestamp(civil).ok());
    if let Some(moment) = civil {
        return Ok(moment);
    }
    let ago = parse_duration(text).ok().and_then(|ago| SignedDuration::try_from(ago).ok());
    ago.and_then(|ago| Timestamp::now().checked_sub(ago).ok()).ok_or_else(|| {
        "write 2026-01-31T10:15:00Z, 2026-01-31 (midnight UTC), or how long ago: 30m, 2h, 7d".to_owned()
    })
}

/// A moment as listings show it: UTC, to the second.
pub(crate) fn show_moment(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A moment as a story shows it: UTC, to the millisecond.
pub(crate) fn show_moment_exactly(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// An age in seconds as people read it: `0.3 s`, `45 s`, `12 min`, `3 h 20 min`, `5 d 2 h`.
pub(crate) fn show_age(seconds: f64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 3_600;
    const DAY: u64 = 86_400;
    if seconds < 10.0 {
        return format!("{:.1} s", seconds.max(0.0));
    }
    let whole = std::time::Duration::try_from_secs_f64(seconds).map_or(u64::MAX, |age| age.as_secs());
    let (major, major_unit, minor, minor_unit) = match whole {
        0..MINUTE => return format!("{whole} s"),
        MINUTE..HOUR => (whole / MINUTE, "min", whole % MINUTE, "s"),
        HOUR..DAY => (whole / HOUR, "h", whole % HOUR / MINUTE, "min"),
        _ => (whole / DAY, "d", whole % DAY / HOUR, "h"),
    };
    if minor == 0 {
        format!("{major} {major_unit}")
    } else {
        format!("{major} {major_unit} {minor} {minor_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_every_documented_form() {
        for (text, expected) in [
            ("2026-01-31T10:15:00Z", "2026-01-31T10:15:00Z"),
            ("2026-01-31T12:15:00+02:00", "2026-01-31T10:15:00Z"),
            ("2026-01-31T10:15", "2026-01-31T10:15:00Z"),
            ("2026-01-31 10:15", "2026-01-31T10:15:00Z"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
        ] {
            assert_eq!(parse_moment(text).map(show_moment).as_deref(), Ok(expected), "{text}");
        }
        let (before, moment) = (Timestamp::now(), parse_moment("2h").unwrap());
        let ago = SignedDuration::from_hours(2);
        assert!(moment + ago >= before && moment + ago <= Timestamp::now());
        assert!(parse_moment("yesterday").unwrap_err().contains("how long ago"));
    }

    #[test]
    fn ages_read_well() {
        for (seconds, text) in [
            (-1.0, "0.0 s"),
            (0.34, "0.3 s"),
            (45.9, "45 s"),
            (60.0, "1 min"),
            (12_000.0, "3 h 20 min"),
            (90_000.0, "1 d 1 h"),
        ] {
            assert_eq!(show_age(seconds), text);
        }
    }
}
