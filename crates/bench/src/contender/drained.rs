//! How a contender is started and what it says at its end.

use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::Outcome;

/// What a process that drained a backlog says of itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Drained {
    pub(crate) events: u64,
    /// When it began to look at the backlog and when its last outcome was committed; `None` when it found nothing.
    pub(crate) busy: Option<Busy>,
    /// Transactions that recorded outcomes.
    pub(crate) settles: u64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_megabytes: f64,
}

/// A stretch of time, in seconds since the Unix epoch, so that those of several processes can be put together.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Busy {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Busy {
    pub(crate) fn between(from: SystemTime, to: SystemTime) -> Self {
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Self { from: seconds(from), to: seconds(to) }
    }
}

impl Drained {
    /// Events per second while it was busy.
    pub(crate) fn rate(&self) -> f64 {
        self.busy.map_or(0.0, |busy| self.events as f64 / (busy.to - busy.from))
    }

    /// What several that worked at the same time did together: sums, of the memory as well.
    pub(crate) fn together(parts: &[Self]) -> Self {
        let stretches = || parts.iter().filter_map(|part| part.busy);
        Self {
            events: parts.iter().map(|part| part.events).sum(),
            busy: stretches().reduce(|a, b| Busy { from: a.from.min(b.from), to: a.to.max(b.to) }),
            settles: parts.iter().map(|part| part.settles).sum(),
            cpu_seconds: parts.iter().map(|part| part.cpu_seconds).sum(),
            peak_megabytes: parts.iter().map(|part| part.peak_megabytes).sum(),
        }
    }

    /// Says it to the process that started this one.
    pub(crate) fn say(&self) -> Outcome<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }
}

/// Plays a part of this program in a process of its own and waits for what it says.
pub(crate) fn play_apart<T: serde::de::DeserializeOwned>(arguments: &[&str]) -> Outcome<T> {
    let output = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("'{}' failed: {}", arguments[0], output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_together_took_from_the_first_look_of_any_to_the_last_outcome_of_any() {
        let part = |from, to| Drained {
            events: 30,
            busy: Some(Busy { from, to }),
            settles: 1,
            cpu_seconds: 0.0,
            peak_megabytes: 0.0,
        };
        let idle = Drained { events: 0, busy: None, ..part(0.0, 0.0) };
        assert_eq!(Drained::together(&[part(10.0, 12.0), idle, part(11.0, 13.0)]).rate(), 20.0);
    }
}
