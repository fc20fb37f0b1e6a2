//! A program that runs beside the test and says something from time to time.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use postbox_testkit::process::Process;
use serde_json::Value;

use crate::bench::PATIENCE;

/// A program whose lines are read as they come; it is killed when the value goes out of scope.
pub(crate) struct Talking {
    process: Process,
    lines: mpsc::Receiver<String>,
}

impl Talking {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::spawn(command);
        let (tell, lines) = mpsc::channel();
        let out = BufReader::new(process.take_output());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { process, lines }
    }

    /// The next line of its standard output.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line is printed; what went wrong stands above")
    }

    /// The next line, which is JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Ends it as Ctrl-C does, and gives the lines that were left.
    pub(crate) fn interrupt(mut self) -> Vec<String> {
        self.process.interrupt();
        let mut left = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            left.push(line);
        }
        assert_eq!(self.process.ended().code(), Some(0));
        left
    }
}
