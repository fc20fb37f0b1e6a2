//! A URL, taken apart once.

use http::{HeaderValue, Uri};
use url::{Host, Url};

use super::config::{ClientConfig, ConfigError};

/// Longest accepted URL in bytes; receivers and proxies commonly stop at 8 KiB for the whole request line.
const MAX_URL_BYTES: usize = 4096;

/// Where requests go.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// Whether TLS is spoken.
    pub(super) https: bool,
    /// Name or IP literal (without brackets) to resolve and to verify.
    pub(super) host: String,
    pub(super) port: u16,
    /// Value of the `host` header.
    pub(super) authority: HeaderValue,
    /// Request target in origin form: path and query.
    pub(super) target: Uri,
}

impl Endpoint {
    pub(super) fn parse(config: &ClientConfig) -> Result<Self, ConfigError> {
        let wrong = |problem: String| ConfigError::new("url", problem);
        let text = config.url.as_str();
        let example = config.hints.example;
        if text.trim().is_empty() {
            return Err(wrong(format!("is empty: write for example {example}")));
        }
        if text.len() > MAX_URL_BYTES {
            return Err(wrong(format!("is {} bytes long, at most {MAX_URL_BYTES} are accepted", text.len())));
        }
        if text.trim() != text {
            return Err(wrong("begins or ends with white space: remove it".to_owned()));
        }
        let url = Url::parse(text).map_err(|error| wrong(explain(text, error, example)))?;
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            // `billing.example:8080/hooks` parses with the host as the scheme.
            scheme if scheme.contains('.') || scheme == "localhost" => {
                return Err(wrong(format!("has no scheme: put https:// or http:// in front of `{scheme}`")));
            }
            scheme => return Err(wrong(format!("`{scheme}://` is no HTTP: use https:// or http://"))),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(format!(
                "holds a user or password, which would end up in logs: take it out and {}",
                config.hints.credentials
            )));
        }
        if url.fragment().is_some() {
            return Err(wrong("has a fragment (`#…`), which is never sent: take it out".to_owned()));
        }
        let (host, literal) = match url.host() {
            Some(Host::Domain(name)) => (name.to_owned(), name.to_owned()),
            Some(Host::Ipv4(address)) => (address.to_string(), address.to_string()),
            Some(Host::Ipv6(address)) => (address.to_string(), format!("[{address}]")),
            None => {
                return Err(wrong(format!("has no host: write for example {example}")));
            }
        };
        if !https && !config.allow_http && !is_loopback(&url) {
            return Err(wrong(
                "is http, so everybody on the way could read what is sent: use https://, or set `allow_http`"
                    .to_owned(),
            ));
        }
        if let Ok(address) = host.parse()
            && let Some(what) = config.egress.refusal(address)
        {
            return Err(wrong(format!(
                "leads to {address}, which is {what}; egress allows {}",
                config.egress
            )));
        }
        let authority = match url.port() {
            Some(port) => format!("{literal}:{port}"),
            None => literal,
        };
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(Self {
            https,
            host,
            port: url.port_or_known_default().unwrap_or(if https { 443 } else { 80 }),
            authority: HeaderValue::from_str(&authority)
                .map_err(|_| wrong("has a host that cannot be sent in a header".to_owned()))?,
            target: target
                .parse()
                .map_err(|_| wrong("has a path or query that HTTP cannot carry".to_owned()))?,
        })
    }
}

/// Whether what is sent to `url` stays on this machine. RFC 6761, 6.3: `localhost` and names under it are loopback.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// `host:port`, an IPv6 address in brackets.
pub(super) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn explain(text: &str, error: url::ParseError, example: &str) -> String {
    match error {
        url::ParseError::RelativeUrlWithoutBase => {
            format!(
                "has no scheme: write https://{}",
                text.trim_start_matches('/').split(['?', '@']).next().unwrap_or_default()
            )
        }
        url::ParseError::EmptyHost => format!("has no host: write for example {example}"),
        other => format!("is no URL ({other}): write for example {example}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::egress::Egress;
    use super::*;

    fn parse(text: &str) -> Result<Endpoint, ConfigError> {
        Endpoint::parse(&ClientConfig { allow_http: true, ..ClientConfig::to(text) })
    }

    fn parsed(text: &str) -> Endpoint {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_url_is_taken_apart_into_what_dialling_and_the_request_need() {
        let endpoint = parsed("https://billing.example/hooks/a%20b?x=1&y");
        assert!(endpoint.https);
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("billing.example", 443));
        assert_eq!(endpoint.authority, "billing.example");
        assert_eq!(endpoint.target, "/hooks/a%20b?x=1&y");
    }

    #[test]
    fn ports_and_addresses_are_kept_as_the_host_header_needs_them() {
        assert_eq!(parsed("http://[::1]:8080").authority, "[::1]:8080");
        assert_eq!(parsed("http://[::1]:8080").host, "::1");
        assert_eq!(parsed("http://127.0.0.1:80/").authority, "127.0.0.1");
        assert_eq!(parsed("http://bücher.example/").host, "xn--bcher-kva.example");
        assert_eq!(parsed("http://localhost:9").target, "/");
    }

    #[test]
    fn what_is_no_usable_url_is_refused_with_what_to_write_instead() {
        for (text, hint) in [
            ("", "is empty"),
            ("billing.example/hooks", "write https://billing.example/hooks"),
            ("billing.example:8080/hooks", "put https:// or http:// in front"),
            ("localhost:8080", "put https:// or http:// in front"),
            ("ftp://billing.example/", "use https:// or http://"),
            ("https://", "has no host"),
            ("https://user:pw@billing.example/", "`authorization` header"),
            ("https://billing.example/#top", "fragment"),
            ("https://billing.example:99999/", "is no URL"),
            (" https://billing.example/", "white space"),
            ("not a url", "has no scheme"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.problem.contains(hint), "{text:?} gave: {error}");
            assert!(!error.to_string().contains("pw"), "{error}");
        }
    }

    #[test]
    fn http_stays_on_this_machine_unless_it_is_allowed() {
        for url in ["http://localhost:1/", "http://shop.localhost/", "http://127.8.9.1/", "http://[::1]/"] {
            Endpoint::parse(&ClientConfig::to(url)).unwrap_or_else(|error| panic!("{url}: {error}"));
        }
        for url in ["http://billing.example/", "http://10.0.0.1/", "http://localhost.example/"] {
            let error = Endpoint::parse(&ClientConfig::to(url)).expect_err(url);
            assert!(error.problem.contains("`allow_http`"), "{error}");
            parsed(url);
        }
    }

    #[test]
    fn a_blocked_address_is_refused_in_every_notation() {
        for host in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "\u{ff11}27.0.0.1",
            "127\u{3002}0.0.1",
            "0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:0:0:1]",
            "[64:ff9b::127.0.0.1]",
        ] {
            let config = ClientConfig {
                egress: Egress::public(),
                allow_http: true,
                ..ClientConfig::to(format!("http://{host}/"))
            };
            let error = Endpoint::parse(&config).expect_err(host);
            assert!(error.problem.contains("egress allows public"), "{host}: {error}");
        }
    }
}
