//! A way through a forward proxy: an HTTP CONNECT tunnel, for https and http alike.
//!
//! Proxies named in the environment (`HTTPS_PROXY`, …) are not used: what a process happens to inherit must not decide
//! where payloads go.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{HOST, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use postbox_core::outcome::FailureClass;
use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use super::config::{ConfigError, ProxyConfig};
use super::dial::{NoConnection, reach};
use super::endpoint::host_and_port;
use super::names::Names;

/// Largest head of a proxy's answer, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Where proxies listen when the URL does not say (RFC 9110 has no default; 3128 and 8080 are customs).
const DEFAULT_PORT: u16 = 80;

/// A proxy that opens tunnels.
pub(super) struct Proxy {
    host: String,
    port: u16,
    names: Names,
    // Marked sensitive.
    authorization: Option<HeaderValue>,
}

impl Proxy {
    pub(super) fn new(config: &ProxyConfig) -> Result<Self, ConfigError> {
        let wrong = |problem: &str| ConfigError::new("proxy", problem);
        let url = Url::parse(&config.url)
            .map_err(|_| wrong("is no URL: write for example http://proxy.internal:3128"))?;
        if url.scheme() != "http" {
            return Err(wrong(
                "must begin with http://; what goes through it is encrypted by https of its own",
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "holds a user or password, which would end up in logs: keep them elsewhere and name the place in \
                 `proxy_credentials`",
            ));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has a path, and a proxy is only a host and a port"));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(wrong("has no host: write for example http://proxy.internal:3128")),
        };
        let authorization =
            config.credentials.as_ref().map(|secret| basic(secret.expose_secret())).transpose()?;
        let port = url.port().unwrap_or(DEFAULT_PORT);
        Ok(Self { names: Names::of(&host, port), host, port, authorization })
    }

    /// A connection to `target`, a host and a port, through the proxy.
    pub(super) async fn tunnel(&self, target: &str, deadline: Instant) -> Result<TcpStream, NoConnection> {
        let stream = self.connect(deadline).await.map_err(NoConnection::transient)?;
        let late = |_| self.transient("took too long to open a tunnel");
        timeout_at(deadline, self.ask(stream, target)).await.map_err(late)?
    }

    async fn connect(&self, deadline: Instant) -> Result<TcpStream, String> {
        let through = |reason: String| format!("the proxy cannot be reached: {reason}");
        let addresses = self.names.look_up(deadline).await.map_err(through)?;
        reach(&self.host, &addresses, deadline).await.map_err(through)
    }

    async fn ask(&self, stream: TcpStream, target: &str) -> Result<TcpStream, NoConnection> {
        let broke = |error: hyper::Error| self.transient(&format!("opened no tunnel: {error}"));
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake::<_, Empty<Bytes>>(TokioIo::new(stream))
            .await
            .map_err(broke)?;
        tokio::spawn(async move {
            let _ = connection.with_upgrades().await;
        });
        let response = sender.send_request(self.request(target)?).await.map_err(broke)?;
        if !response.status().is_success() {
            return Err(self.refused(response.status()));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(broke)?;
        let parts = upgraded
            .downcast::<TokioIo<TcpStream>>()
            .map_err(|_| self.transient("gave the connection back in another form"))?;
        if !parts.read_buf.is_empty() {
            return Err(self.transient("sent something before the tunnel was used"));
        }
        Ok(parts.io.into_inner())
    }

    fn request(&self, target: &str) -> Result<Request<Empty<Bytes>>, NoConnection> {
        let unfit = |_| self.transient("cannot be asked for this host");
        let uri: Uri = target.parse().map_err(unfit)?;
        let host =
            HeaderValue::from_str(target).map_err(|_| self.transient("cannot be asked for this host"))?;
        let mut request = Request::new(Empty::new());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("postbox/", env!("CARGO_PKG_VERSION"))));
        if let Some(authorization) = &self.authorization {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }

    fn refused(&self, status: StatusCode) -> NoConnection {
        let (class, remedy) = match status {
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                (FailureClass::Misconfigured, ": check `proxy_credentials`")
            }
            StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED => {
                (FailureClass::Misconfigured, ": it allows no tunnel to this host and port")
            }
            _ => (FailureClass::Transient, ""),
        };
        let words = status.canonical_reason().unwrap_or_default();
        let place = host_and_port(&self.host, self.port);
        NoConnection {
            class,
            reason: format!("the proxy {place} answered {} {words}{remedy}", status.as_u16()),
        }
    }

    fn transient(&self, what: &str) -> NoConnection {
        NoConnection::transient(format!("the proxy {} {what}", host_and_port(&self.host, self.port)))
    }
}

/// RFC 7617: the credentials, base64.
fn basic(credentials: &str) -> Result<HeaderValue, ConfigError> {
    if !credentials.contains(':') {
        return Err(ConfigError::new("proxy_credentials", "are not of the form user:password"));
    }
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(credentials)))
        .expect("base64 is valid in a header");
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_repeating_what_may_be_secret() {
        for (url, credentials, hint) in [
            ("proxy:3128", None, "http://"),
            ("", None, "is no URL"),
            ("https://proxy:3128", None, "must begin with http://"),
            ("socks5://proxy:1080", None, "must begin with http://"),
            ("http://me:hunter2@proxy:3128", None, "`proxy_credentials`"),
            ("http://proxy:3128/path", None, "only a host and a port"),
            ("http://proxy:3128", Some("hunter2"), "user:password"),
        ] {
            let config = ProxyConfig { url: url.to_owned(), credentials: credentials.map(Into::into) };
            let error = Proxy::new(&config).err().expect(url);
            assert!(error.to_string().contains(hint), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
