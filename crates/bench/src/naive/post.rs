//! A keep-alive HTTP client for one URL: one connection, one request at a time.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::claims::Claimed;

/// Posts to one `http://` URL. A connection that broke is opened anew for the next request.
pub struct Post {
    url: Uri,
    authority: String,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// Why an event was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// The URL has no host or is not `http`.
    #[error("{0} is not an http:// URL with a host")]
    Url(String),
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    /// The connection broke, or what came was no HTTP.
    #[error("no answer: {0}")]
    Http(#[from] hyper::Error),
    /// An answer other than 2xx.
    #[error("answered {0}")]
    Refused(u16),
}

impl Post {
    /// A client for `url`; connects with the first request.
    ///
    /// # Errors
    /// When `url` is not an `http://` URL with a host.
    pub fn new(url: &str) -> Result<Self, PostError> {
        let wrong = || PostError::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        Ok(Self { url: uri, authority, connection: None })
    }

    /// Sends one event and waits for the answer.
    ///
    /// # Errors
    /// When anything but a 2xx came back.
    pub async fn send(&mut self, event: &Claimed) -> Result<(), PostError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await?;
        let response = connection.send_request(self.request(event)).await?;
        let status = response.status();
        response.into_body().collect().await?;
        self.connection = Some(connection);
        if status.is_success() { Ok(()) } else { Err(PostError::Refused(status.as_u16())) }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, PostError> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Its end shows in the next request.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }

    fn request(&self, event: &Claimed) -> Request<Full<Bytes>> {
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .header("x-idempotency-key", event.event_id.to_string())
            .header("x-event-sequence", event.aggregate_seq)
            .body(Full::new(Bytes::from(event.envelope())))
            .expect("a path that was parsed, constant names and numbers make a valid request")
    }
}
