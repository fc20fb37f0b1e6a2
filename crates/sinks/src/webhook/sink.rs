//! The attempt itself.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::Full;
use postbox_core::event::Payload;
use postbox_core::outcome::{FailureClass, Outcome};
use postbox_core::sink::{Attempt, Sink};
use tokio::time::{Instant, timeout_at};

use super::answer::{self, no_answer};
use super::config::{ConfigError, WebhookConfig};
use super::dial::{Dialer, MAX_HEAD_BYTES, NoConnection, Sender};
use super::endpoint::Endpoint;
use super::envelope::Envelope;
use super::head::Head;
use super::pool::Pool;
use super::trace_context::TraceContext;

/// Delivers events by HTTP POST to one URL.
///
/// Runs inside a tokio runtime; each open connection is a task of its own there.
pub struct WebhookSink {
    target: Uri,
    envelope: Envelope,
    head: Head,
    dialer: Dialer,
    pool: Pool,
}

impl std::fmt::Debug for WebhookSink {
    /// Leaves out the target: its path or query may hold a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookSink").field("head", &self.head).finish_non_exhaustive()
    }
}

impl WebhookSink {
    /// Checks `config` and prepares everything that does not change between attempts. Connects to nothing.
    ///
    /// # Errors
    /// When the URL, a secret, a header, a file of certificates or the proxy cannot be used.
    pub fn new(config: WebhookConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::parse(&config)?;
        Ok(Self {
            head: Head::new(&config, &endpoint)?,
            dialer: Dialer::new(&endpoint, &config)?,
            pool: Pool::new(config.concurrency),
            target: endpoint.target,
            envelope: config.envelope,
        })
    }

    /// The request, or why this event cannot be sent in this destination's envelope.
    fn request(&self, attempt: &Attempt, payload: &str) -> Result<Request<Full<Bytes>>, String> {
        let trace = attempt.event.headers.as_deref().and_then(TraceContext::of);
        let message = self.envelope.wrap(&attempt.event, payload, trace.as_ref())?;
        let now = jiff::Timestamp::now().as_second();
        let headers = self.head.headers(attempt, &message, trace.as_ref(), now);
        let mut request = Request::new(Full::new(Bytes::from(message.body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// A waiting connection first; when that turns out to have been closed before a byte was sent, a new one.
    async fn attempt(&self, mut request: Request<Full<Bytes>>, timeout: Duration) -> Outcome {
        let deadline = Instant::now() + timeout;
        if let Some(waiting) = self.pool.take(deadline).await {
            match self.send(waiting, request, deadline, timeout).await {
                Sent::Ended(outcome) => return outcome,
                Sent::Nothing { request: unsent, .. } => request = *unsent,
            }
        }
        let fresh = match self.dialer.dial(deadline).await {
            Ok(fresh) => fresh,
            Err(NoConnection { class, reason }) => return no_answer(class, &reason),
        };
        match self.send(fresh, request, deadline, timeout).await {
            Sent::Ended(outcome) => outcome,
            Sent::Nothing { error, .. } => no_answer(
                FailureClass::Transient,
                &format!("the connection was closed before the request was sent{}", cause(&error)),
            ),
        }
    }

    async fn send(
        &self,
        mut connection: Sender,
        request: Request<Full<Bytes>>,
        deadline: Instant,
        timeout: Duration,
    ) -> Sent {
        // After a pause of the whole process, what follows would be a request beyond its time.
        if Instant::now() >= deadline {
            return Sent::Ended(Outcome::NotStarted(
                "its time was over before the request was written".into(),
            ));
        }
        let unknown = |reason: &str| Sent::Ended(no_answer(FailureClass::Unknown, reason));
        let response = match timeout_at(deadline, connection.try_send_request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(mut error)) => {
                return match error.take_message() {
                    // Handed back, so it was never begun to be written.
                    Some(request) => Sent::Nothing { request: Box::new(request), error: error.into_error() },
                    None => unknown(&without_answer(&error.into_error())),
                };
            }
            // Dropping the request's future makes hyper close the connection.
            Err(_) => return unknown(&format!("no answer within {}", seconds(timeout))),
        };
        let (head, body) = response.into_parts();
        let body = answer::read_body(body, deadline).await;
        if body.complete {
            self.pool.put(connection);
        }
        Sent::Ended(answer::outcome(head.status, &head.headers, &body.beginning, SystemTime::now()))
    }
}

/// How handing a request to a connection ended.
enum Sent {
    /// Something may have been sent; this is the outcome.
    Ended(Outcome),
    /// Provably nothing was sent.
    Nothing {
        // Boxed: far larger than the other variant, and rare.
        request: Box<Request<Full<Bytes>>>,
        error: hyper::Error,
    },
}

/// One line about a request that was, perhaps, sent and got no answer.
fn without_answer(error: &hyper::Error) -> String {
    if error.is_parse_too_large() {
        format!("the answer's head is larger than {} KiB or has more than 100 headers", MAX_HEAD_BYTES / 1024)
    } else if error.is_parse() {
        "answered something that is not HTTP/1".to_owned()
    } else if error.is_incomplete_message() {
        "the connection was closed before an answer came".to_owned()
    } else {
        format!("the connection broke before an answer came{}", cause(error))
    }
}

fn cause(error: &hyper::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(String::new, |source| format!(": {source}"))
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[async_trait]
impl Sink for WebhookSink {
    async fn deliver(&self, attempt: &Attempt) -> Outcome {
        let Payload::Inline(payload) = &attempt.event.payload else {
            return Outcome::NotStarted("the payload was not loaded before the attempt".to_owned());
        };
        match self.request(attempt, payload) {
            Ok(request) => self.attempt(request, attempt.timeout).await,
            Err(reason) => no_answer(FailureClass::Permanent, &reason),
        }
    }
}
