//! A program that runs beside the test and says something from time to time.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use serde_json::Value;

use crate::bench::PATIENCE;

/// A program whose lines are read as they come; it is killed when the value goes out of scope.
pub(crate) struct Talking {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Talking {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { child, lines }
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
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let mut left = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            left.push(line);
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        left
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
