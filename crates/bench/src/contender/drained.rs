//! How a contender is started and what it says at its end.

use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::Outcome;

/// What a process that drained a backlog says of itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Drained {
    pub(crate) events: u64,
    /// From its first look at the backlog to the commit of the last outcome.
    pub(crate) seconds: f64,
    /// Transactions that recorded outcomes.
    pub(crate) settles: u64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_megabytes: f64,
}

impl Drained {
    pub(crate) fn rate(&self) -> f64 {
        self.events as f64 / self.seconds
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
