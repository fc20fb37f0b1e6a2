//! Calling back: statuses reach whoever subscribed to them.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::http;
use crate::status::{SIGNATURE_HEADER, signature};

/// The wait after the first call that was not taken; doubled each time up to [`LONGEST_WAIT`]. Meta repeats for days.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Who is called, and the secret that signs the calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// `host:port`.
    pub address: String,
    /// Path and query.
    pub target: String,
    /// The app's secret.
    pub app_secret: String,
}

impl Callback {
    /// The callback at `url`, `http://host:port/path` on this machine.
    ///
    /// # Errors
    /// When it is no such URL.
    pub fn new(url: &str, app_secret: impl Into<String>) -> Result<Self, String> {
        let rest = url.strip_prefix("http://").ok_or("a callback's URL begins with http:// here")?;
        let (address, target) = match rest.find('/') {
            Some(slash) => (&rest[..slash], &rest[slash..]),
            None => (rest, "/"),
        };
        if !address.contains(':') || rest.contains(char::is_whitespace) {
            return Err("a callback's URL has a host and a port here".to_owned());
        }
        Ok(Self { address: address.to_owned(), target: target.to_owned(), app_secret: app_secret.into() })
    }

    /// Calls with `body` until it is taken with 200.
    pub(crate) async fn call(&self, body: &str) {
        let mut wait = FIRST_WAIT;
        while !matches!(tokio::time::timeout(TIMEOUT, self.post(body)).await, Ok(Ok(200))) {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Asks whether the callback knows `verify_token`, as Meta does before it subscribes one; the answer's status and body.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn verify(&self, verify_token: &str, challenge: &str) -> std::io::Result<(u16, String)> {
        let separator = if self.target.contains('?') { '&' } else { '?' };
        let target = format!(
            "{}{separator}hub.mode=subscribe&hub.challenge={}&hub.verify_token={}",
            self.target,
            escaped(challenge),
            escaped(verify_token)
        );
        let (status, body) = self.request("GET", &target, "", b"").await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    async fn post(&self, body: &str) -> std::io::Result<u16> {
        let signed = format!(
            "content-type: application/json\r\n{SIGNATURE_HEADER}: {}\r\n",
            signature(&self.app_secret, body.as_bytes())
        );
        Ok(self.request("POST", &self.target, &signed, body.as_bytes()).await?.0)
    }

    async fn request(
        &self,
        method: &str,
        target: &str,
        headers: &str,
        body: &[u8],
    ) -> std::io::Result<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).await?;
        let answer = http::read(&mut stream, &mut Vec::new()).await?;
        let answer = answer.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        Ok((answer.target.parse().unwrap_or(0), answer.body))
    }
}

/// RFC 3986, 2.3: everything but unreserved characters percent-encoded.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
