//! A small HTTP server that remembers what it got and answers as told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::bench::PATIENCE;

/// One request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    head: String,
    /// The body as it came in, and what it says.
    pub(crate) raw: Vec<u8>,
    pub(crate) body: serde_json::Value,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Whether a receiver that has `secret` accepts it, by the reference implementation of Standard Webhooks.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers = names
            .into_iter()
            .filter_map(|name| Some((http::HeaderName::from_static(name), self.header(name)?.parse().ok()?)));
        let headers: http::HeaderMap = headers.collect();
        standardwebhooks::Webhook::new(secret).unwrap().verify(&self.raw, &headers).is_ok()
    }

    pub(crate) fn event_id(&self) -> &str {
        self.body["event_id"].as_str().unwrap_or_default()
    }
}

#[derive(Default)]
struct Record {
    received: Mutex<Vec<Received>>,
    more: Condvar,
    status: AtomicU16,
}

/// Listens on a port of its own until the test ends.
pub(crate) struct Receiver {
    port: u16,
    record: Arc<Record>,
}

impl Receiver {
    /// Answers 200 until told otherwise.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let record = Arc::new(Record { status: AtomicU16::new(200), ..Record::default() });
        let shared = Arc::clone(&record);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let record = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &record));
            }
        });
        Self { port, record }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hooks", self.port)
    }

    pub(crate) fn answer(&self, status: u16) {
        self.record.status.store(status, Ordering::SeqCst);
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.record.received.lock().unwrap().clone()
    }

    /// Waits until `count` requests came in, and tells them.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Received> {
        let received = self.record.received.lock().unwrap();
        let (received, waited) = self
            .record
            .more
            .wait_timeout_while(received, PATIENCE, |received| received.len() < count)
            .unwrap();
        assert!(!waited.timed_out(), "only {} of {count} requests came in", received.len());
        received.clone()
    }
}

/// Answers one connection's requests until it closes.
fn serve(stream: &TcpStream, record: &Record) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let mut request = Received { head, raw: Vec::new(), body: serde_json::Value::Null };
        let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        request.body = serde_json::from_slice(&body).unwrap_or_default();
        request.raw = body;
        // The answer is fixed before a test can see the request and change what the next one gets.
        let status = record.status.load(Ordering::SeqCst);
        record.received.lock().unwrap().push(request);
        record.more.notify_all();
        write!(&*stream, "HTTP/1.1 {status} Said\r\ncontent-length: 5\r\n\r\nnoted").ok()?;
    }
}
