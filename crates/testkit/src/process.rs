//! Child processes that tests start, signal and outlive.

mod leash;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use leash::Leash;

/// Longest wait for anything: a machine that is busy otherwise shall not fail a test.
const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not hold within a minute and a half, naming `what` was waited for.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that is killed when the value goes out of scope, and when this process ends, even by SIGKILL.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Until the child is waited for.
    leash: Option<Leash>,
}

impl Process {
    /// Starts `command`.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(mut command: Command) -> Self {
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let leash = Some(Leash::tie(child.id()));
        Self { child, leash }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What stands behind `word` in the first line of its output that begins with it. The rest of its output is read and
    /// dropped as it comes: a process that writes on must not die of nobody listening.
    ///
    /// # Panics
    /// When its output is no pipe, or ends before that line.
    pub fn told(&mut self, word: &str) -> String {
        let mut lines = BufReader::new(self.take_output()).lines().map_while(Result::ok);
        let told = lines
            .find_map(|line| Some(line.strip_prefix(word)?.trim().to_owned()))
            .unwrap_or_else(|| panic!("the process did not say {word:?}"));
        std::thread::spawn(move || lines.for_each(drop));
        told
    }

    /// Its standard output.
    ///
    /// # Panics
    /// When that is no pipe, or was taken before.
    pub fn take_output(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("its output is a pipe")
    }

    /// SIGKILL, and waits until it is dead.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.bury();
    }

    /// Waits until it has ended, after which its id may be given to another process.
    fn bury(&mut self) -> ExitStatus {
        let end = self.child.wait().expect("a child can be waited for");
        self.untie();
        end
    }

    fn untie(&mut self) {
        if let Some(leash) = self.leash.take() {
            leash.release();
        }
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGINT, as Ctrl-C sends it.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// SIGSTOP: nothing in it moves until [`Self::resume`].
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a child has a process id");
        // Until it is waited for, even an ended child has its id, so the signal reaches nobody else.
        kill_process(pid, signal).expect("a child can be signalled");
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.end().is_none()
    }

    /// How it ended, if it has.
    pub fn end(&mut self) -> Option<ExitStatus> {
        let end = self.child.try_wait().expect("a child can be waited for");
        if end.is_some() {
            self.untie();
        }
        end
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end within a minute and a half.
    pub fn ended(&mut self) -> ExitStatus {
        eventually("the process ends", || !self.is_running());
        self.bury()
    }

    /// Processor time it has used so far.
    ///
    /// # Panics
    /// When it has ended, or there is no `/proc`.
    #[must_use]
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        // proc(5): after the name in parentheses, utime and stime are the 12th and 13th field, in 1/100 s.
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
        let ticks: u64 = fields.map(|field| field.parse::<u64>().expect("a number of ticks")).sum();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.untie();
    }
}
