//! The failed attempts that a delivery remembers: a JSON array, oldest first.

use postbox_core::delivery::AttemptFailure;
use postbox_core::operations::{AttemptStory, HISTORY_LIMIT};

use super::clock::{Millis, to_timestamp};

/// `stored` with one more failure, without the oldest when there are too many.
pub(crate) fn extend(
    stored: Option<&str>,
    attempt: u32,
    status: Option<u16>,
    failure: &AttemptFailure,
    now: Millis,
) -> String {
    let mut attempts = parse(stored);
    attempts.push(AttemptStory {
        at: to_timestamp(now).unwrap_or_default(),
        attempt,
        class: failure.class.to_owned(),
        status,
        reason: failure.reason.clone(),
        answer: failure.answer.clone(),
        took_ms: u64::try_from(failure.took.as_millis()).unwrap_or(u64::MAX),
    });
    let surplus = attempts.len().saturating_sub(HISTORY_LIMIT);
    attempts.drain(..surplus);
    // Nothing in it can fail to be JSON: the keys are field names.
    serde_json::to_string(&attempts).unwrap_or_else(|_| "[]".to_owned())
}

/// The attempts in `stored`; none when it is no such array (somebody edited it).
pub(crate) fn parse(stored: Option<&str>) -> Vec<AttemptStory> {
    stored.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
