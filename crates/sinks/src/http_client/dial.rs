//! Opening a connection: resolve, vet, connect, shake hands. Nothing of a request leaves here.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use postbox_core::outcome::FailureClass;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::config::{ClientConfig, ConfigError};
use super::egress::Egress;
use super::endpoint::{Endpoint, host_and_port};
use super::names::Names;
use super::proxy::Proxy;
use super::tls;

/// Longest time from the first look-up to a connection that is ready, TLS included.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Largest head of an answer, in bytes: status line and all headers.
pub(super) const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The sending half of a connection.
pub(super) type Sender = http1::SendRequest<Full<Bytes>>;

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct NoConnection {
    pub(super) class: FailureClass,
    /// One line that says at which step it failed.
    pub(super) reason: String,
}

impl NoConnection {
    /// Most reasons pass by themselves.
    pub(super) fn transient(reason: impl Into<String>) -> Self {
        Self { class: FailureClass::Transient, reason: reason.into() }
    }
}

/// Opens connections to one endpoint.
pub(super) struct Dialer {
    host: String,
    port: u16,
    egress: Egress,
    names: Names,
    proxy: Option<Proxy>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Dialer {
    pub(super) fn new(endpoint: &Endpoint, config: &ClientConfig) -> Result<Self, ConfigError> {
        let tls = if endpoint.https {
            let name = ServerName::try_from(endpoint.host.clone())
                .map_err(|_| ConfigError::new("url", "has a host that no certificate can be for"))?;
            Some((tls::connector(config.ca_file.as_deref(), config.client_identity.as_ref())?, name))
        } else if config.client_identity.is_some() {
            let problem = "is for https, and the URL is http: take it out, or use https://";
            return Err(ConfigError::new("client_certificate", problem));
        } else {
            None
        };
        Ok(Self {
            host: endpoint.host.clone(),
            port: endpoint.port,
            egress: config.egress.clone(),
            names: Names::of(&endpoint.host, endpoint.port),
            proxy: config.proxy.as_ref().map(Proxy::new).transpose()?,
            tls,
        })
    }

    /// Opens a connection.
    pub(super) async fn dial(&self, deadline: Instant) -> Result<Sender, NoConnection> {
        let deadline = deadline.min(Instant::now() + CONNECT_TIMEOUT);
        let stream = self.connect(deadline).await?;
        // Requests are written whole; waiting to fill a segment only delays their last one.
        let _ = stream.set_nodelay(true);
        self.shake_hands(stream, deadline).await.map_err(NoConnection::transient)
    }

    async fn connect(&self, deadline: Instant) -> Result<TcpStream, NoConnection> {
        let (host, port) = (self.host.as_str(), self.port);
        let Some(proxy) = &self.proxy else {
            let addresses = self.vetted(deadline).await?;
            return reach(host, &addresses, deadline).await.map_err(NoConnection::transient);
        };
        // A proxy that looks the name up itself would be a way around the policy.
        let target = match self.egress.is_unrestricted() {
            true => host_and_port(host, port),
            false => self.vetted(deadline).await?[0].to_string(),
        };
        proxy.tunnel(&target, deadline).await
    }

    /// The endpoint's addresses, if the policy allows all of them.
    ///
    /// One that is refused condemns the others: a name that mixes them is made to get past a guard, or is a mistake that
    /// picking an allowed one would hide until the resolver answers in another order.
    async fn vetted(&self, deadline: Instant) -> Result<Vec<SocketAddr>, NoConnection> {
        let addresses = self.names.look_up(deadline).await.map_err(NoConnection::transient)?;
        for address in &addresses {
            if let Some(what) = self.egress.refusal(address.ip()) {
                let reason = blocked(&self.host, *address, what, &self.egress);
                return Err(NoConnection { class: FailureClass::Permanent, reason });
            }
        }
        Ok(addresses)
    }

    async fn shake_hands(&self, stream: TcpStream, deadline: Instant) -> Result<Sender, String> {
        let Some((connector, name)) = &self.tls else { return handshake(stream).await };
        let (host, port) = (&self.host, self.port);
        let stream = timeout_at(deadline, connector.connect(name.clone(), stream))
            .await
            .map_err(|_| format!("TLS handshake with {host}:{port} took too long"))?
            .map_err(|error| format!("TLS handshake with {host}:{port} failed: {error}"))?;
        handshake(stream).await
    }
}

fn blocked(host: &str, address: SocketAddr, what: &str, egress: &Egress) -> String {
    let address = address.ip();
    let found = match host.parse::<IpAddr>() {
        Ok(literal) if literal == address => format!("{address} is {what}"),
        _ => format!("{host} resolves to {address}, which is {what}"),
    };
    format!("blocked: {found}; egress allows {egress}")
}

/// Connects to the first of `addresses` that answers.
pub(super) async fn reach(
    host: &str,
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<TcpStream, String> {
    let mut last = format!("looking up {host} gave no address");
    for (tried, address) in addresses.iter().enumerate() {
        // A share of the time for each, so that one dead address does not use up what the others need.
        let now = Instant::now();
        let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let share = now + deadline.saturating_duration_since(now) / left;
        match timeout_at(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = format!("connecting to {host} ({address}) failed: {}", describe(&error)),
            Err(_) => last = format!("connecting to {host} ({address}) took too long"),
        }
    }
    Err(last)
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A dialer whose name resolves to these, one list per connection.
    fn dialer(egress: Egress, answers: &[&[SocketAddr]]) -> Dialer {
        let config = ClientConfig { egress, allow_http: true, ..ClientConfig::to("http://shop.example/") };
        let endpoint = Endpoint::parse(&config).unwrap();
        let names = Names::of("shop.example", 80).scripted(answers.iter().map(|answer| answer.to_vec()));
        Dialer { names, ..Dialer::new(&endpoint, &config).unwrap() }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn at(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 80)
    }

    #[tokio::test]
    async fn every_connection_is_vetted_and_dialled_by_the_same_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let egress = Egress::listed(["public", "127.0.0.1"]).unwrap();
        let dialer = dialer(egress, &[&[here], &[at("169.254.169.254")], &[here]]);
        dialer.dial(soon()).await.expect("the first answer is allowed");
        let refused = dialer.dial(soon()).await.expect_err("the name was bound to another address");
        assert_eq!(refused.class, FailureClass::Permanent);
        assert!(refused.reason.contains("shop.example resolves to 169.254.169.254"), "{}", refused.reason);
        assert!(refused.reason.contains("metadata"), "{}", refused.reason);
        dialer.dial(soon()).await.expect("a refusal is not remembered");
    }

    #[tokio::test]
    async fn one_blocked_answer_condemns_them_all_wherever_it_stands() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let egress = Egress::listed(["127.0.0.1"]).unwrap();
        let hidden = at("10.0.0.1");
        let dialer = dialer(egress, &[&[hidden, here], &[here, hidden]]);
        for _ in 0..2 {
            let refused = dialer.dial(soon()).await.expect_err("10.0.0.1 is not allowed");
            assert!(refused.reason.contains("a private address"), "{}", refused.reason);
        }
    }

    #[tokio::test]
    async fn a_name_without_an_address_is_transient() {
        let refused = dialer(Egress::public(), &[]).dial(soon()).await.expect_err("nothing to dial");
        assert_eq!(refused.class, FailureClass::Transient);
    }
}
