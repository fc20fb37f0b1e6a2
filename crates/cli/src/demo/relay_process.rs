//! The relay as a process of its own: this very program, started with `relay`.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};

use super::problem::Problem;
use super::stage::Stage;

/// Longest time a relay may take from the signal to its end: more than its drain timeout.
const FAREWELL: Duration = Duration::from_secs(15);

/// A running relay; it is killed when the value goes out of scope.
#[derive(Debug)]
pub(super) struct RelayProcess {
    child: Child,
    pid: u32,
}

impl RelayProcess {
    /// Starts a relay on this stage.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(super) fn start(stage: &Stage) -> Result<Self, Problem> {
        let log = stage.open_log()?;
        let program = std::env::current_exe().map_err(Problem::because("this program cannot find itself"))?;
        let child = Command::new(program)
            .arg("relay")
            .arg("--config")
            .arg(stage.configuration())
            .current_dir(stage.folder())
            // They would send the relay to somebody else's database.
            .env_remove("POSTBOX_DATABASE_URL")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(Problem::because("the relay cannot be started"))?;
        let pid = child.id().unwrap_or_default();
        Ok(Self { child, pid })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for an end that nobody asked for.
    pub(super) async fn ended(&mut self) -> Problem {
        let status = self.child.wait().await;
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        Problem::new(format!("the relay ended by itself: {status}"))
    }

    /// Kills it: SIGKILL, which no process can catch.
    ///
    /// # Errors
    /// When the process cannot be killed or awaited.
    pub(super) async fn kill(mut self) -> Result<ExitStatus, Problem> {
        self.child.start_kill().map_err(Problem::because("the relay cannot be killed"))?;
        self.child.wait().await.map_err(Problem::because("the killed relay cannot be awaited"))
    }

    /// Asks it to end (SIGTERM) and waits until it did.
    ///
    /// # Errors
    /// When it cannot be asked, or does not end.
    pub(super) async fn stop(mut self) -> Result<ExitStatus, Problem> {
        self.ask_to_stop()?;
        let ended = tokio::time::timeout(FAREWELL, self.child.wait()).await;
        let ended = ended.map_err(Problem::because("the relay did not end after SIGTERM"))?;
        ended.map_err(Problem::because("the relay cannot be awaited"))
    }

    #[cfg(unix)]
    fn ask_to_stop(&mut self) -> Result<(), Problem> {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let sent = pid.map_or(Err(rustix::io::Errno::SRCH), |pid| kill_process(pid, Signal::TERM));
        sent.map_err(Problem::because("the relay cannot be asked to end"))
    }

    #[cfg(not(unix))]
    fn ask_to_stop(&mut self) -> Result<(), Problem> {
        self.child.start_kill().map_err(Problem::because("the relay cannot be ended"))
    }
}

/// Whether it died by SIGKILL.
#[cfg(unix)]
pub(super) fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(rustix::process::Signal::KILL.as_raw())
}

/// Whether it did not end by itself.
#[cfg(not(unix))]
pub(super) fn was_killed(status: ExitStatus) -> bool {
    !status.success()
}
