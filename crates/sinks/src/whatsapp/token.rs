//! The access token, which may change while the relay runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use crate::http_client::ConfigError;

/// An access token with the permission `whatsapp_business_messaging`.
#[derive(Clone)]
pub struct Token {
    source: Source,
}

#[derive(Clone)]
enum Source {
    Fixed(SecretString),
    Read { read: Read, every: Duration },
}

type Read = Arc<dyn Fn() -> Result<SecretString, String> + Send + Sync>;

impl Token {
    /// A token that `read` gives, now and again when an attempt begins and `every` has passed since. It must not block for
    /// long. When it fails later, or gives something that no token can be, the token before stays in use.
    pub fn read(
        every: Duration,
        read: impl Fn() -> Result<SecretString, String> + Send + Sync + 'static,
    ) -> Self {
        Self { source: Source::Read { read: Arc::new(read), every } }
    }

    fn now(&self) -> Result<HeaderValue, ConfigError> {
        match &self.source {
            Source::Fixed(token) => authorization(token),
            Source::Read { read, .. } => {
                authorization(&read().map_err(|problem| ConfigError::new("token", problem))?)
            }
        }
    }
}

impl From<SecretString> for Token {
    fn from(token: SecretString) -> Self {
        Self { source: Source::Fixed(token) }
    }
}

impl From<&str> for Token {
    fn from(token: &str) -> Self {
        SecretString::from(token).into()
    }
}

impl From<String> for Token {
    fn from(token: String) -> Self {
        SecretString::from(token).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The header that carries the token at present.
pub(super) struct Authorization {
    token: Token,
    kept: Mutex<Kept>,
}

struct Kept {
    header: HeaderValue,
    read_at: Instant,
}

impl Authorization {
    /// Reads the token for the first time.
    pub(super) fn new(token: Token) -> Result<Self, ConfigError> {
        let kept = Kept { header: token.now()?, read_at: Instant::now() };
        Ok(Self { token, kept: Mutex::new(kept) })
    }

    pub(super) fn header(&self) -> HeaderValue {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Source::Read { every, .. } = self.token.source
            && kept.read_at.elapsed() >= every
        {
            kept.read_at = Instant::now();
            if let Ok(header) = self.token.now() {
                kept.header = header;
            }
        }
        kept.header.clone()
    }
}

/// RFC 6750, 2.1.
fn authorization(token: &SecretString) -> Result<HeaderValue, ConfigError> {
    let wrong = |problem: &str| ConfigError::new("token", problem);
    let token = token.expose_secret();
    if token.is_empty() {
        return Err(wrong("is empty"));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("holds white space or another character that no access token has"));
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| wrong("holds a character that no access token has"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_cannot_be_sent_is_refused_and_never_shown() {
        for text in ["", "EAAG hunter2", "EAAGhunter2\n", "hunter2ü"] {
            let token = Token::from(text);
            let error = Authorization::new(token.clone()).err().expect("refused");
            assert_eq!(error.key, "token");
            assert!(!format!("{error} {token:?}").contains("hunter2"));
        }
        let fine = Authorization::new("EAAGhunter2".into()).unwrap().header();
        assert_eq!(fine, "Bearer EAAGhunter2");
        assert!(!format!("{fine:?}").contains("hunter2"));
    }

    #[test]
    fn a_token_is_read_again_and_one_that_cannot_be_read_leaves_the_one_before() {
        let answers = Mutex::new(vec![Ok("second"), Ok("not one"), Err("gone"), Ok("first")]);
        let next = move || {
            let answer = answers.lock().unwrap().pop().unwrap();
            answer.map(SecretString::from).map_err(str::to_owned)
        };
        let authorization = Authorization::new(Token::read(Duration::ZERO, next)).unwrap();
        let headers = [(); 3].map(|()| authorization.header());
        assert_eq!(headers, ["Bearer first", "Bearer first", "Bearer second"]);
    }

    #[test]
    fn a_token_is_not_read_again_before_its_time() {
        let reads = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&reads);
        let read = move || {
            *counter.lock().unwrap() += 1;
            Ok(SecretString::from("token"))
        };
        let authorization = Authorization::new(Token::read(Duration::from_secs(3_600), read)).unwrap();
        authorization.header();
        assert_eq!(*reads.lock().unwrap(), 1);
    }
}
