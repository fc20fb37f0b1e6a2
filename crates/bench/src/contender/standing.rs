//! Relays that work until they are told to stop, each in a process of its own.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::drained::Drained;
use crate::Outcome;

/// A relay's process; killed with this value unless it was stopped.
#[derive(Debug)]
pub(crate) struct StandingRelay {
    process: Option<Child>,
}

impl StandingRelay {
    /// Starts one that delivers to `target`.
    pub(crate) fn start(
        database_url: &str,
        target: &str,
        concurrency: u32,
        lease: Duration,
    ) -> Outcome<Self> {
        let process = Command::new(std::env::current_exe()?)
            .args(["relay", "--standing", "--database-url", database_url, "--target", target])
            .args(["--concurrency", &concurrency.to_string(), "--lease-ms", &lease.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self { process: Some(process) })
    }

    /// The label under which it is found in `outbox_relay`.
    pub(crate) fn label(&self) -> String {
        self.process.as_ref().map_or_else(String::new, |process| format!("pid {}", process.id()))
    }

    /// Has it finish what it began and leave; returns what it did.
    pub(crate) fn stop(mut self) -> Outcome<Drained> {
        let mut process = self.process.take().ok_or("the relay was stopped before")?;
        drop(process.stdin.take());
        let output = process.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("a standing relay failed: {}", output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Drop for StandingRelay {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
