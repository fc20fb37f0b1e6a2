//! What relays say in their logs, as far as the ledger needs it.

use std::collections::HashMap;
use std::path::Path;

use uuid::Uuid;

/// Counted lines of logs.
#[derive(Debug, Clone, Default)]
pub struct Logbook {
    /// Settles that came after the term was over and were refused, by shard and epoch: `lease_lost`.
    pub refused: Vec<(u16, i64)>,
    /// Times a relay was told that it had been evicted.
    pub evicted: usize,
    /// Attempts whose outcome is unknown, by event: the answer was lost, or came too late.
    pub unknown: HashMap<Uuid, usize>,
    /// Attempts that failed for any reason.
    pub failed: usize,
    /// Relays that were stopped and could not record everything in time.
    pub cut_short: usize,
    /// Lines that tell of a defect: a panic, or an error that is no failure of the surroundings.
    pub defects: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Line {
    level: String,
    message: String,
    #[serde(default)]
    class: String,
    event_id: Option<Uuid>,
    shard: Option<u16>,
    epoch: Option<i64>,
}

impl Logbook {
    /// Adds what is in the file at `path`.
    ///
    /// # Panics
    /// When it cannot be read.
    pub(crate) fn add(&mut self, path: &Path) {
        let text = std::fs::read(path).expect("a log can be read");
        for line in String::from_utf8_lossy(&text).lines() {
            match serde_json::from_str::<Line>(line) {
                Ok(line) => self.take(line),
                // A relay that was killed may have left half a line.
                Err(_) if line.starts_with('{') => {}
                Err(_) if line.contains("panicked") => self.defects.push(line.to_owned()),
                // What the command says when it ends; its exit code says whether that is a defect.
                Err(_) => {}
            }
        }
    }

    fn take(&mut self, line: Line) {
        let says = |words: &str| line.message.contains(words);
        if says("attempt failed") {
            self.failed += 1;
            if line.class == "unknown"
                && let Some(event) = line.event_id
            {
                *self.unknown.entry(event).or_default() += 1;
            }
        } else if says("late settle was refused") {
            self.refused.extend(line.shard.zip(line.epoch));
        } else if says("was evicted") {
            self.evicted += 1;
        } else if says("drain_timeout has passed") {
            self.cut_short += 1;
        } else if line.level == "ERROR" {
            self.defects.push(line.message);
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.refused.extend(other.refused);
        self.evicted += other.evicted;
        for (event, count) in other.unknown {
            *self.unknown.entry(event).or_default() += count;
        }
        self.failed += other.failed;
        self.cut_short += other.cut_short;
        self.defects.extend(other.defects);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_settles_and_unknown_attempts_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let lines = [
            r#"{"timestamp":"2026-12-01T00:00:00Z","level":"WARN","message":"attempt failed","class":"unknown","event_id":"00000000-0000-0000-0000-000000000007"}"#,
            r#"{"timestamp":"2026-12-01T00:00:00Z","level":"WARN","message":"attempt failed","class":"transient"}"#,
            r#"{"timestamp":"2026-12-01T00:00:00Z","level":"WARN","message":"lease_lost: a late settle was refused","shard":3,"epoch":2}"#,
            r#"{"timestamp":"2026-12-01T00:00:00Z","level":"WA"#,
        ];
        std::fs::write(&path, lines.join("\n")).expect("a file");
        let mut logbook = Logbook::default();
        logbook.add(&path);
        assert_eq!((logbook.failed, logbook.refused.as_slice()), (2, [(3, 2)].as_slice()));
        assert_eq!(logbook.unknown.get(&Uuid::from_u128(7)), Some(&1));
        assert!(logbook.defects.is_empty());
    }
}
