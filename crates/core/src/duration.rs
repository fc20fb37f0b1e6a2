//! Durations as people write them: `200ms`, `5s`, `2m`, `1h30m`, `30d`.

use std::time::Duration;

/// Units from long to short, each in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Longest accepted duration: ten years.
const MAX_MS: u64 = 3_650 * 86_400_000;

/// Reads a duration: whole numbers with the units `ms`, `s`, `m`, `h`, `d`, one or several, the longest first.
///
/// # Errors
/// One line that says what is wrong with `text`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("it is empty; write for example \"5s\"".into());
    }
    let mut total_ms: u64 = 0;
    let mut shorter_than = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, tail) = tail.split_at(letters);
        if number.is_empty() {
            return Err(format!(
                "{text:?} is not a duration; write a whole number and a unit, for example \"5s\""
            ));
        }
        if unit.is_empty() {
            return Err(format!(
                "{text:?} has no unit; write \"{number}ms\", \"{number}s\", \"{number}m\", \"{number}h\" or \"{number}d\""
            ));
        }
        let Some(&(_, unit_ms)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("{unit:?} in {text:?} is not a unit; the units are ms, s, m, h, d"));
        };
        if unit_ms >= shorter_than {
            return Err(format!(
                "{text:?} has its units out of order; the longest comes first, as in \"1h30m\""
            ));
        }
        shorter_than = unit_ms;
        total_ms = number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(unit_ms))
            .and_then(|ms| total_ms.checked_add(ms))
            .filter(|&ms| ms <= MAX_MS)
            .ok_or_else(|| format!("{text:?} is longer than ten years"))?;
        rest = tail;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Writes a duration so that [`parse_duration`] reads the same one (to the millisecond).
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    let mut rest_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, unit_ms) in UNITS {
        let count = rest_ms / unit_ms;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
            rest_ms %= unit_ms;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_back_as_it_was_written() {
        for (text, ms) in
            [("200ms", 200), ("5s", 5_000), ("2m", 120_000), ("1h30m", 5_400_000), ("30d", 2_592_000_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(show_duration(Duration::from_millis(ms)), text);
        }
        assert_eq!(show_duration(Duration::ZERO), "0s");
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("5", "no unit"),
            ("s", "not a duration"),
            ("5 s", "no unit"),
            ("1.5s", "no unit"),
            ("-5s", "not a duration"),
            ("5sec", "not a unit"),
            ("30m1h", "out of order"),
            ("99999999999999999999d", "longer than ten years"),
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains(reason), "{text:?} gave {error:?}");
        }
    }
}
