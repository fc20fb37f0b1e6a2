//! What was received.

use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use super::request;
use crate::ledger::{Entry, Moment};

/// One request.
#[derive(Debug, Clone)]
pub struct Received {
    /// Position in the order of arrival, from 0.
    pub arrival: usize,
    /// Number of the connection it came on, from 0.
    pub connection: usize,
    /// Request method.
    pub method: String,
    /// Request target.
    pub target: String,
    /// Headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// From `x-idempotency-key`.
    pub event_id: Option<Uuid>,
    /// From the envelope: type and id.
    pub aggregate: Option<(String, String)>,
    /// From `x-event-sequence`.
    pub sequence: Option<i64>,
    /// From `postbox-attempt`.
    pub attempt: Option<u32>,
    /// Whether it was marked as a replay.
    pub replay: bool,
    /// The status of the answer, if it got one whole.
    pub status: Option<u16>,
}

impl Received {
    pub(super) fn parse(arrival: usize, connection: usize, head: &[u8], body: &[u8]) -> Self {
        let (method, target) = request::request_line(head);
        let mut received = Self {
            arrival,
            connection,
            method,
            target,
            headers: request::headers(head),
            body: body.to_vec(),
            event_id: None,
            aggregate: aggregate(body),
            sequence: None,
            attempt: None,
            replay: false,
            status: None,
        };
        let header = |name| received.header(name);
        let event_id = header("x-idempotency-key").and_then(|text| text.parse().ok());
        let sequence = header("x-event-sequence").and_then(|text| text.parse().ok());
        let attempt = header("postbox-attempt").and_then(|text| text.parse().ok());
        let replay = header("postbox-replay") == Some("true");
        (received.event_id, received.sequence) = (event_id, sequence);
        (received.attempt, received.replay) = (attempt, replay);
        received
    }

    /// Value of the first header `name` (lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Whether it was answered 2xx.
    #[must_use]
    pub fn was_confirmed(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The line for a ledger; `None` for a request that carries no event.
    pub(super) fn entry(&self, moment: Moment) -> Option<Entry> {
        let (aggregate_type, aggregate_id) = self.aggregate.clone()?;
        Some(Entry {
            moment,
            event_id: self.event_id?,
            aggregate_type,
            aggregate_id,
            sequence: self.sequence?,
            attempt: self.attempt.unwrap_or_default(),
            replay: self.replay,
            status: self.status,
        })
    }
}

fn aggregate(body: &[u8]) -> Option<(String, String)> {
    #[derive(serde::Deserialize)]
    struct Envelope {
        aggregate_type: String,
        aggregate_id: String,
    }
    let envelope: Envelope = serde_json::from_slice(body).ok()?;
    Some((envelope.aggregate_type, envelope.aggregate_id))
}

/// A file with one line per event received, written at once: what it says survives the death of any process.
#[derive(Debug)]
pub struct RecordFile {
    file: Mutex<std::fs::File>,
}

impl RecordFile {
    /// Appends to the file at `path`, which is made when it is missing.
    ///
    /// # Errors
    /// When the file cannot be opened for writing.
    pub fn append(path: &Path) -> std::io::Result<Self> {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Mutex::new(file) })
    }

    pub(super) fn write(&self, entry: &Entry) {
        let mut line = serde_json::to_string(entry).expect("an entry is plain data");
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).expect("the record can be written");
    }
}
