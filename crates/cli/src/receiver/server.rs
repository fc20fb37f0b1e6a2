//! A small HTTP/1.1 server, everything in it bounded.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What a server holds of its clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections at a time; more wait to be accepted.
    pub(crate) connections: usize,
    /// Largest body that is read.
    pub(crate) body_bytes: usize,
}

impl Default for Bounds {
    /// For a receiver on the developer's own machine.
    fn default() -> Self {
        Self { connections: 512, body_bytes: 16 * 1024 * 1024 }
    }
}

/// Longest time a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time a client may take to send the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A request that has arrived whole.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Arrived {
    /// The first header of this name, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What is done with a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// This is answered.
    Given { status: StatusCode, headers: Vec<(HeaderName, HeaderValue)>, body: String },
    /// The connection is closed without an answer.
    Lost,
    /// Nothing happens until the client has had enough.
    Never,
}

impl Answer {
    /// A status and nothing else.
    pub(crate) fn status(status: StatusCode) -> Self {
        Self::Given { status, headers: Vec::new(), body: String::new() }
    }
}

/// Whoever the requests are for.
pub(crate) trait Receive: Send + Sync + 'static {
    /// Decides about a request. Dropped when the client goes away.
    fn receive(&self, request: Arrived) -> impl Future<Output = Answer> + Send;
}

/// An open server; dropping it closes its port and its connections.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    _accepting: JoinSet<()>,
}

impl Server {
    /// Serves `listener`.
    ///
    /// # Errors
    /// When the system does not tell the listener's address.
    pub(crate) fn on(listener: TcpListener, receiver: Arc<impl Receive>) -> io::Result<Self> {
        Self::bounded(listener, receiver, Bounds::default())
    }

    /// Serves `listener` within these bounds.
    ///
    /// # Errors
    /// When the system does not tell the listener's address.
    pub(crate) fn bounded(
        listener: TcpListener,
        receiver: Arc<impl Receive>,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, receiver, bounds));
        Ok(Self { address, _accepting: accepting })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: TcpListener, receiver: Arc<impl Receive>, bounds: Bounds) {
    let places = Arc::new(Semaphore::new(bounds.connections));
    let mut connections = JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
        let Ok((stream, _)) = listener.accept().await else { continue };
        let receiver = Arc::clone(&receiver);
        connections.spawn(async move {
            serve(stream, receiver, bounds.body_bytes).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, receiver: Arc<impl Receive>, body_bytes: usize) {
    // Without it each answer would wait for the sender's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| respond(request, Arc::clone(&receiver), body_bytes));
    // An error is a connection that ended, which is the sender's business to notice.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Ends the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer is lost")]
struct AnswerLost;

impl From<Infallible> for AnswerLost {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

async fn respond(
    request: Request<Incoming>,
    receiver: Arc<impl Receive>,
    body_bytes: usize,
) -> Result<Response<Full<Bytes>>, AnswerLost> {
    let (head, body) = request.into_parts();
    let too_large = || {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        Ok(response)
    };
    if body.size_hint().lower() > body_bytes as u64 {
        return too_large();
    }
    let whole = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, body_bytes).collect());
    let body = match whole.await.map_err(|_| AnswerLost)? {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            return too_large();
        }
        Err(_) => return Err(AnswerLost),
    };
    let arrived = Arrived { method: head.method, uri: head.uri, headers: head.headers, body };
    match receiver.receive(arrived).await {
        Answer::Given { status, headers, body } => {
            let mut response = Response::new(Full::from(body));
            *response.status_mut() = status;
            response.headers_mut().extend(headers);
            Ok(response)
        }
        Answer::Lost => Err(AnswerLost),
        Answer::Never => std::future::pending().await,
    }
}
