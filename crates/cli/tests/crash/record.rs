//! The file that the receiver's process writes, followed while it grows.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use postbox_testkit::ledger::{self, Entry, Moment};
use postbox_testkit::process::eventually;

pub(crate) struct Record {
    path: PathBuf,
    file: File,
    /// Read so far, without a line that is not there whole.
    whole_lines: String,
    open_line: String,
}

impl Record {
    pub(crate) fn follow(path: PathBuf) -> Self {
        let file = File::open(&path).unwrap();
        Self { path, file, whole_lines: String::new(), open_line: String::new() }
    }

    /// Number of lines so far: two for each request, its arrival and its answer.
    pub(crate) fn lines(&mut self) -> usize {
        self.file.read_to_string(&mut self.open_line).unwrap();
        let end = self.open_line.rfind('\n').map_or(0, |end| end + 1);
        self.whole_lines.extend(self.open_line.drain(..end));
        self.whole_lines.bytes().filter(|&byte| byte == b'\n').count()
    }

    /// Waits until every request that arrived was dealt with, and tells the number of lines then.
    pub(crate) fn quiet(&mut self) -> usize {
        let mut lines = 0;
        eventually("the receiver has dealt with every request", || {
            lines = self.lines();
            let count = |word| self.whole_lines.matches(word).count();
            count("\"moment\":\"arrival\"") == count("\"moment\":\"answer\"")
        });
        lines
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entries = ledger::read(&self.path).unwrap();
        assert!(entries.iter().all(|entry| entry.moment != Moment::Whole), "every answer takes a while");
        entries
    }
}
