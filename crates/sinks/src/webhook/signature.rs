//! Standard Webhooks signatures, version 1 (symmetric):
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use super::config::ConfigError;

const SECRET_PREFIX: &str = "whsec_";

/// Key sizes the specification allows, in bytes.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Signs with every configured secret, newest first as configured.
pub(super) struct Signer {
    // Each already has its key mixed in; a signature starts from a copy.
    keys: Vec<Hmac<Sha256>>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("secrets", &self.keys.len()).finish()
    }
}

impl Signer {
    /// `None` when there is no secret.
    pub(super) fn new(secrets: &[SecretString]) -> Result<Option<Self>, ConfigError> {
        let keys = secrets.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        Ok((!keys.is_empty()).then_some(Self { keys }))
    }

    /// Value of `webhook-signature`: `v1,<base64>` per secret, divided by spaces.
    pub(super) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> HeaderValue {
        let mut value = String::with_capacity(self.keys.len() * 48);
        for key in &self.keys {
            let mut mac = key.clone();
            for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
                mac.update(part);
            }
            if !value.is_empty() {
                value.push(' ');
            }
            value.push_str("v1,");
            STANDARD.encode_string(mac.finalize().into_bytes(), &mut value);
        }
        HeaderValue::try_from(value).expect("base64, commas and spaces are valid in a header")
    }
}

fn key(secret: &SecretString) -> Result<Hmac<Sha256>, ConfigError> {
    let wrong = |problem: String| ConfigError::new("secret", problem);
    let text = secret.expose_secret();
    let encoded = text.strip_prefix(SECRET_PREFIX).unwrap_or(text);
    let bytes = STANDARD.decode(encoded).map_err(|_| {
        wrong(format!(
            "is no Standard Webhooks secret: {SECRET_PREFIX} followed by base64. Make one with: \
             echo {SECRET_PREFIX}$(openssl rand -base64 32)"
        ))
    })?;
    if !KEY_BYTES.contains(&bytes.len()) {
        return Err(wrong(format!(
            "holds {} bytes, a Standard Webhooks secret has {} to {}. Make one with: \
             echo {SECRET_PREFIX}$(openssl rand -base64 32)",
            bytes.len(),
            KEY_BYTES.start(),
            KEY_BYTES.end()
        )));
    }
    Ok(Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1/0MP7gxCbk=";

    fn signer(secrets: &[&str]) -> Signer {
        let secrets: Vec<SecretString> = secrets.iter().map(|&secret| secret.into()).collect();
        Signer::new(&secrets).unwrap().unwrap()
    }

    #[test]
    fn the_signature_is_what_the_reference_implementation_computes() {
        let (id, time, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        let ours = signer(&[OLD]).sign(id, &time.to_string(), body);
        let oracle = standardwebhooks::Webhook::new(OLD).unwrap().sign(id, time, body).unwrap();
        assert_eq!(ours, oracle.as_str());
    }

    #[test]
    fn during_rotation_every_secret_signs() {
        let value = signer(&[NEW, OLD]).sign("id", "1", b"{}");
        let expected = format!(
            "{} {}",
            standardwebhooks::Webhook::new(NEW).unwrap().sign("id", 1, b"{}").unwrap(),
            standardwebhooks::Webhook::new(OLD).unwrap().sign("id", 1, b"{}").unwrap()
        );
        assert_eq!(value, expected.as_str());
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_refused_without_repeating_it() {
        for (secret, hint) in
            [("whsec_not base64!", "base64"), ("whsec_c2hvcnQ=", "5 bytes"), ("", "0 bytes")]
        {
            let error = Signer::new(&[secret.into()]).unwrap_err();
            assert!(error.problem.contains(hint), "{error}");
            assert!(secret.is_empty() || !error.to_string().contains(secret), "{error}");
        }
    }

    #[test]
    fn debug_output_shows_no_key() {
        assert_eq!(format!("{:?}", signer(&[NEW])), "Signer { secrets: 1 }");
    }
}
