//! Opening a connection: resolve, connect, shake hands. Nothing of a request leaves here.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::config::ConfigError;
use super::endpoint::Endpoint;
use super::tls;

/// Longest time from the first look-up to a connection that is ready, TLS included.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Largest head of an answer, in bytes: status line and all headers.
pub(super) const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The sending half of a connection.
pub(super) type Sender = http1::SendRequest<Full<Bytes>>;

/// Opens connections to one endpoint.
pub(super) struct Dialer {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Dialer {
    pub(super) fn new(endpoint: &Endpoint, ca_file: Option<&Path>) -> Result<Self, ConfigError> {
        let tls = if endpoint.https {
            let name = ServerName::try_from(endpoint.host.clone())
                .map_err(|_| ConfigError::new("url", "has a host that no certificate can be for"))?;
            Some((tls::connector(ca_file)?, name))
        } else {
            None
        };
        Ok(Self { host: endpoint.host.clone(), port: endpoint.port, tls })
    }

    /// Opens a connection; on failure, one line that says at which step it failed.
    pub(super) async fn dial(&self, deadline: Instant) -> Result<Sender, String> {
        let deadline = deadline.min(Instant::now() + CONNECT_TIMEOUT);
        let stream = self.connect(deadline).await?;
        // Requests are written whole; waiting to fill a segment only delays their last one.
        let _ = stream.set_nodelay(true);
        let late = |what: &str| format!("{what} {}:{} took too long", self.host, self.port);
        match &self.tls {
            None => handshake(stream).await,
            Some((connector, name)) => {
                let stream = timeout_at(deadline, connector.connect(name.clone(), stream))
                    .await
                    .map_err(|_| late("TLS handshake with"))?
                    .map_err(|error| {
                        format!("TLS handshake with {}:{} failed: {error}", self.host, self.port)
                    })?;
                handshake(stream).await
            }
        }
    }

    async fn connect(&self, deadline: Instant) -> Result<TcpStream, String> {
        let (host, port) = (self.host.as_str(), self.port);
        let addresses: Vec<SocketAddr> = timeout_at(deadline, tokio::net::lookup_host((host, port)))
            .await
            .map_err(|_| format!("looking up {host} took too long"))?
            .map_err(|error| format!("looking up {host} failed: {error}"))?
            .collect();
        let mut last = format!("looking up {host} gave no address");
        for (tried, address) in addresses.iter().enumerate() {
            // A share of the time for each, so that one dead address does not use up what the others need.
            let now = Instant::now();
            let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            let share = now + deadline.saturating_duration_since(now) / left;
            match timeout_at(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => {
                    last = format!("connecting to {host} ({address}) failed: {}", describe(&error))
                }
                Err(_) => last = format!("connecting to {host} ({address}) took too long"),
            }
        }
        Err(last)
    }
}

/// The system's words without their number.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        io::ErrorKind::HostUnreachable => "host unreachable".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".to_owned(),
        _ => error.to_string(),
    }
}

async fn handshake<T>(stream: T) -> Result<Sender, String>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| format!("opening the connection failed: {error}"))?;
    // Ends when the sender is dropped or the peer closes; what goes wrong is reported to the request it hits.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}
