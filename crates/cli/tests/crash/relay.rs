//! A child process, and the relay as one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::scene::eventually;

/// A process that is killed when the value goes out of scope.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    pub(crate) fn spawn(mut command: Command) -> Self {
        Self { child: command.spawn().unwrap() }
    }

    /// What stands behind `word` in the first line of its output that begins with it.
    pub(crate) fn told(&mut self, word: &str) -> String {
        let output = BufReader::new(self.child.stdout.take().unwrap());
        output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix(word)?.trim().to_owned()))
            .unwrap()
    }

    /// SIGKILL, and waits until it is dead.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn terminate(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        eventually("the process ends", || !self.is_running());
        self.child.wait().unwrap()
    }

    /// Processor time it has used so far.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // proc(5): after the name in parentheses, utime and stime are the 12th and 13th field, in 1/100 s.
        let ticks: u64 = stat
            .rsplit(") ")
            .next()
            .unwrap()
            .split(' ')
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u64>().unwrap())
            .sum();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
