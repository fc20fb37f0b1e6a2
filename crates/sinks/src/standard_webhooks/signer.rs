//! The sender's side.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac as _;
use jiff::Timestamp;
use secrecy::SecretString;

use super::secret::{SecretError, SigningKey};

/// Secrets that may sign at the same time. A rotation needs two; each costs some 50 to 90 bytes of header.
pub const MAX_SECRETS: usize = 10;

/// A secret with the time in which it signs.
#[derive(Debug, Clone)]
pub struct SigningSecret {
    /// `whsec_…` (HMAC-SHA256) or `whsk_…` (ed25519).
    pub secret: SecretString,
    /// From this moment on it is not used any more; `None`: it has no end.
    pub until: Option<Timestamp>,
}

impl From<SecretString> for SigningSecret {
    fn from(secret: SecretString) -> Self {
        Self { secret, until: None }
    }
}

impl From<&str> for SigningSecret {
    fn from(secret: &str) -> Self {
        SecretString::from(secret).into()
    }
}

/// Signs with every secret that is active.
pub struct Signer {
    keys: Vec<Key>,
}

struct Key {
    key: SigningKey,
    /// Seconds of the Unix epoch.
    until: Option<i64>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("secrets", &self.keys.len()).finish()
    }
}

impl Signer {
    /// A signer with these secrets; their order is that of the signatures.
    ///
    /// # Errors
    /// When there is none, or more than [`MAX_SECRETS`], when one cannot be used, or when each of them has an end: a
    /// signer that stops signing by itself would be noticed by receivers only.
    pub fn new(secrets: &[SigningSecret]) -> Result<Self, SecretError> {
        if secrets.len() > MAX_SECRETS {
            return Err(SecretError::TooMany(secrets.len()));
        }
        let keys = secrets.iter().map(Key::new).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(SecretError::Missing);
        }
        if keys.iter().all(|key| key.until.is_some()) {
            return Err(SecretError::AllExpire);
        }
        Ok(Self { keys })
    }

    /// Value of `webhook-signature` for a message sent at `timestamp`, in seconds of the Unix epoch: one signature per
    /// secret that is active then, divided by spaces. Visible ASCII only.
    ///
    /// `id` must not hold a full stop, which divides what is signed; see [`super::VerifyError::MalformedId`].
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let content = Content { id, timestamp: &timestamp.to_string(), body };
        let mut value = String::with_capacity(self.keys.len() * 96);
        for key in self.keys.iter().filter(|key| key.until.is_none_or(|until| timestamp < until)) {
            if !value.is_empty() {
                value.push(' ');
            }
            key.key.sign(&content, &mut value);
        }
        value
    }
}

impl Key {
    fn new(secret: &SigningSecret) -> Result<Self, SecretError> {
        Ok(Self { key: SigningKey::parse(&secret.secret)?, until: secret.until.map(Timestamp::as_second) })
    }
}

impl SigningKey {
    fn sign(&self, content: &Content<'_>, value: &mut String) {
        match self {
            Self::Symmetric(mac) => {
                let mut mac = mac.clone();
                content.parts().into_iter().for_each(|part| mac.update(part));
                value.push_str("v1,");
                STANDARD.encode_string(mac.finalize().into_bytes(), value);
            }
            Self::Ed25519(pair) => {
                value.push_str("v1a,");
                STANDARD.encode_string(pair.sign(&content.whole()), value);
            }
        }
    }
}

/// What is signed.
pub(super) struct Content<'a> {
    pub(super) id: &'a str,
    pub(super) timestamp: &'a str,
    pub(super) body: &'a [u8],
}

impl<'a> Content<'a> {
    pub(super) fn parts(&self) -> [&'a [u8]; 5] {
        [self.id.as_bytes(), b".", self.timestamp.as_bytes(), b".", self.body]
    }

    /// Ed25519 goes over its message twice and takes it in one piece.
    pub(super) fn whole(&self) -> Vec<u8> {
        self.parts().concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1/0MP7gxCbk=";

    /// The message, key and signature from the specification's example of headers, whose key pair the reference server
    /// publishes with its tests.
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const PAIR: &str =
        "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
    const SEED: &str = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc=";
    const SIGNATURE: &str =
        "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";

    fn sign(secrets: &[SigningSecret], at: i64) -> String {
        Signer::new(secrets).unwrap().sign(ID, at, BODY)
    }

    fn oracle(secret: &str, at: i64) -> String {
        standardwebhooks::Webhook::new(secret).unwrap().sign(ID, at, BODY).unwrap()
    }

    fn until(secret: &str, second: i64) -> SigningSecret {
        SigningSecret { until: Some(Timestamp::from_second(second).unwrap()), ..secret.into() }
    }

    #[test]
    fn v1_is_what_the_reference_implementation_computes() {
        assert_eq!(sign(&[OLD.into()], TIME), oracle(OLD, TIME));
        assert_eq!(oracle(OLD, TIME), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn v1a_is_the_signature_of_the_specification() {
        for key in [PAIR, SEED] {
            assert_eq!(sign(&[key.into()], TIME), SIGNATURE);
        }
    }

    #[test]
    fn every_active_secret_signs_in_the_order_given() {
        let expected = format!("{} {SIGNATURE} {}", oracle(NEW, TIME), oracle(OLD, TIME));
        assert_eq!(sign(&[NEW.into(), PAIR.into(), OLD.into()], TIME), expected);
    }

    #[test]
    fn a_secret_signs_until_its_last_second_and_never_after() {
        let secrets = [NEW.into(), until(OLD, 100)];
        assert_eq!(sign(&secrets, 99), format!("{} {}", oracle(NEW, 99), oracle(OLD, 99)));
        assert_eq!(sign(&secrets, 100), oracle(NEW, 100));
    }

    #[test]
    fn secrets_that_would_all_expire_are_refused() {
        let error = Signer::new(&[until(NEW, 200), until(OLD, 100)]).unwrap_err();
        assert_eq!(error, SecretError::AllExpire);
        assert_eq!(Signer::new(&[]).unwrap_err(), SecretError::Missing);
        assert_eq!(Signer::new(&vec![NEW.into(); 11]).unwrap_err(), SecretError::TooMany(11));
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_refused_without_repeating_it() {
        for (secret, hint) in [
            ("whsec_not base64!", "base64"),
            ("whsec_c2hvcnQ=", "5 bytes"),
            ("", "0 bytes"),
            ("whsk_c2hvcnQ=", "5 bytes"),
            ("whsk_??", "base64"),
            ("whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", "can only verify"),
            (&PAIR.replace("VKI", "VKJ"), "is not that of the first"),
        ] {
            let error = Signer::new(&[secret.into()]).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
            assert!(secret.is_empty() || !error.contains(secret), "{error}");
        }
    }

    #[test]
    fn debug_output_shows_no_key() {
        let secrets = [SigningSecret::from(NEW)];
        let shown = format!("{:?} {secrets:?}", Signer::new(&secrets).unwrap());
        assert!(shown.starts_with("Signer { secrets: 1 }") && !shown.contains("C2FV"), "{shown}");
    }
}
