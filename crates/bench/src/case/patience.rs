//! Waiting for something that another process does.

use std::time::{Duration, Instant};

use crate::Outcome;

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks again and again until the answer is yes; fails when it is not after `patience`.
pub(crate) fn wait_until(
    what: &str,
    patience: Duration,
    mut holds: impl FnMut() -> Outcome<bool>,
) -> Outcome<()> {
    let began = Instant::now();
    while !holds()? {
        if began.elapsed() > patience {
            return Err(format!("waited {patience:?} in vain until {what}").into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
