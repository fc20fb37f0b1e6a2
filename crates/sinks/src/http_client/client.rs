//! The request itself: at most once.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderMap, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use postbox_core::outcome::{Failure, FailureClass, Outcome};
use tokio::time::{Instant, timeout_at};

use super::body;
use super::config::{ClientConfig, ConfigError};
use super::dial::{Dialer, MAX_HEAD_BYTES, NoConnection, Sender};
use super::endpoint::Endpoint;
use super::pool::Pool;
use super::text::one_line;

/// Connections to one URL.
///
/// Runs inside a tokio runtime; each open connection is a task of its own there.
pub(crate) struct Client {
    target: Uri,
    authority: HeaderValue,
    dialer: Dialer,
    pool: Pool,
    body_wait: Option<Duration>,
}

/// A final answer, as far as it was read.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The beginning of its body, at most 16 KiB.
    pub(crate) body: Vec<u8>,
    /// Whether that is all of it.
    #[cfg_attr(not(feature = "whatsapp"), expect(dead_code, reason = "a webhook's status says enough"))]
    pub(crate) complete: bool,
}

impl Client {
    /// Checks `config` and prepares everything that does not change between attempts. Connects to nothing.
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::parse(config)?;
        Ok(Self {
            dialer: Dialer::new(&endpoint, config)?,
            pool: Pool::new(config.concurrency),
            body_wait: config.body_wait,
            target: endpoint.target,
            authority: endpoint.authority,
        })
    }

    /// Checks the URL against what is allowed, without looking anything up.
    pub(crate) fn check_url(config: &ClientConfig) -> Result<(), ConfigError> {
        Endpoint::parse(config).map(|_| ())
    }

    /// What every request begins with: where it goes and who sends it.
    pub(crate) fn head(&self) -> HeaderMap {
        let mut head = HeaderMap::new();
        head.insert(HOST, self.authority.clone());
        head.insert(USER_AGENT, HeaderValue::from_static(concat!("postbox/", env!("CARGO_PKG_VERSION"))));
        head
    }

    /// Posts `body` once and reads the answer, all within `timeout`; what came of it when there was no answer.
    pub(crate) async fn post(
        &self,
        headers: HeaderMap,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<Answer, Outcome> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = headers;
        self.exchange(request, timeout).await
    }

    /// A waiting connection first; when that turns out to have been closed before a byte was sent, a new one.
    async fn exchange(
        &self,
        mut request: Request<Full<Bytes>>,
        timeout: Duration,
    ) -> Result<Answer, Outcome> {
        let deadline = Instant::now() + timeout;
        if let Some(waiting) = self.pool.take(deadline).await {
            match self.send(waiting, request, deadline, timeout).await {
                Sent::Answered(answer) => return Ok(answer),
                Sent::Unanswered(outcome) => return Err(outcome),
                Sent::Nothing { request: unsent, .. } => request = *unsent,
            }
        }
        let fresh = match self.dialer.dial(deadline).await {
            Ok(fresh) => fresh,
            Err(NoConnection { class, reason }) => return Err(no_answer(class, &reason)),
        };
        match self.send(fresh, request, deadline, timeout).await {
            Sent::Answered(answer) => Ok(answer),
            Sent::Unanswered(outcome) => Err(outcome),
            Sent::Nothing { error, .. } => Err(no_answer(
                FailureClass::Transient,
                &format!("the connection was closed before the request was sent{}", cause(&error)),
            )),
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
            return Sent::Unanswered(Outcome::NotStarted(
                "its time was over before the request was written".into(),
            ));
        }
        let unknown = |reason: &str| Sent::Unanswered(no_answer(FailureClass::Unknown, reason));
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
        let patience = self.body_wait.map_or(deadline, |wait| Instant::now() + wait);
        let body = body::read(body, deadline.min(patience)).await;
        if body.complete {
            self.pool.put(connection);
        }
        Sent::Answered(Answer {
            status: head.status,
            headers: head.headers,
            body: body.beginning,
            complete: body.complete,
        })
    }
}

/// How handing a request to a connection ended.
enum Sent {
    /// With an answer.
    Answered(Answer),
    /// Something may have been sent; this is the outcome.
    Unanswered(Outcome),
    /// Provably nothing was sent.
    Nothing {
        // Boxed: far larger than the other variants, and rare.
        request: Box<Request<Full<Bytes>>>,
        error: hyper::Error,
    },
}

/// A failure without an answer.
pub(crate) fn no_answer(class: FailureClass, reason: &str) -> Outcome {
    Outcome::Failed(Failure::new(class, one_line(reason)))
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
