//! The receiver's side.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac as _;
use ring::signature::{ED25519, UnparsedPublicKey};
use secrecy::SecretString;

use super::secret::{Mac, SecretError, VerifyingKey};
use super::signer::Content;

/// How far a timestamp may be from now, in either direction: what the reference libraries allow.
pub const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// Signatures that are looked at in one header; each costs work that a stranger can ask for.
pub const MAX_SIGNATURES: usize = 32;

/// The three headers of a signed request.
#[derive(Debug, Clone, Copy)]
pub struct SignatureHeaders<'a> {
    /// `webhook-id`.
    pub id: &'a str,
    /// `webhook-timestamp`, seconds of the Unix epoch.
    pub timestamp: &'a str,
    /// `webhook-signature`.
    pub signature: &'a str,
}

impl<'a> SignatureHeaders<'a> {
    /// Takes the headers out of whatever holds them: `header` gives the value of a name in lower case.
    ///
    /// # Errors
    /// [`VerifyError::MissingHeader`] for the first one that is not there or empty.
    pub fn find(mut header: impl FnMut(&'static str) -> Option<&'a str>) -> Result<Self, VerifyError> {
        let mut required =
            |name| header(name).filter(|value| !value.is_empty()).ok_or(VerifyError::MissingHeader(name));
        Ok(Self {
            id: required("webhook-id")?,
            timestamp: required("webhook-timestamp")?,
            signature: required("webhook-signature")?,
        })
    }
}

/// Why a request is not to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// A header is not there: the request is not signed, or by something else.
    #[error("the header {0} is missing")]
    MissingHeader(&'static str),
    /// The id holds a full stop. These divide what is signed, so that bytes could be moved between id and body without
    /// changing it.
    #[error("the webhook-id holds a full stop")]
    MalformedId,
    /// The timestamp is no number of seconds.
    #[error("the webhook-timestamp is no number of seconds")]
    MalformedTimestamp,
    /// The timestamp is further back than [`TOLERANCE`]: the request may be an old one, sent again by somebody else.
    #[error("the webhook-timestamp is {0} s in the past, at most {max} s are accepted", max = TOLERANCE.as_secs())]
    TooOld(u64),
    /// The timestamp is further ahead than [`TOLERANCE`]: one of the two clocks is wrong.
    #[error("the webhook-timestamp is {0} s in the future, at most {max} s are accepted", max = TOLERANCE.as_secs())]
    TooNew(u64),
    /// More than [`MAX_SIGNATURES`].
    #[error("there are more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
    /// Every signature is of a version for which there is no key here.
    #[error("no signature is of a version that fits a key: v1 needs whsec_, v1a needs whpk_")]
    OtherVersion,
    /// No signature fits: another secret, or another body than was signed.
    #[error("no signature fits: another secret signed it, or the body is not what was signed")]
    NoMatch,
}

/// Verifies requests.
pub struct Verifier {
    keys: Vec<VerifyingKey>,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("keys", &self.keys.len()).finish()
    }
}

impl Verifier {
    /// A verifier that believes each of these: `whsec_…`, `whpk_…`, or `whsk_…`, of which it uses the public half.
    ///
    /// # Errors
    /// When there is none or one cannot be used.
    pub fn new(secrets: &[SecretString]) -> Result<Self, SecretError> {
        let keys = secrets.iter().map(VerifyingKey::parse).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(SecretError::Missing) } else { Ok(Self { keys }) }
    }

    /// Whether `body`, exactly the bytes that came in, was signed by the holder of one of the secrets, close enough to
    /// `now` (seconds of the Unix epoch). Secrets are compared in constant time.
    ///
    /// # Errors
    /// Why not. What a verified request says can still be a repetition: remember its id.
    pub fn verify(&self, headers: &SignatureHeaders<'_>, body: &[u8], now: i64) -> Result<(), VerifyError> {
        if headers.id.contains('.') {
            return Err(VerifyError::MalformedId);
        }
        check_time(headers.timestamp, now)?;
        let content = Content { id: headers.id, timestamp: headers.timestamp, body };
        let mut comparable = false;
        for (count, signature) in headers.signature.split_ascii_whitespace().enumerate() {
            if count == MAX_SIGNATURES {
                return Err(VerifyError::TooManySignatures);
            }
            let Some(signature) = Signature::parse(signature) else { continue };
            for key in self.keys.iter().filter(|key| signature.version.fits(key)) {
                comparable = true;
                if key.verifies(&content, &signature.bytes) {
                    return Ok(());
                }
            }
        }
        Err(if comparable { VerifyError::NoMatch } else { VerifyError::OtherVersion })
    }
}

fn check_time(timestamp: &str, now: i64) -> Result<(), VerifyError> {
    // Digits only: what is signed is the text, and "+5" would be another text for the same number.
    if !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(VerifyError::MalformedTimestamp);
    }
    let sent: i64 = timestamp.parse().map_err(|_| VerifyError::MalformedTimestamp)?;
    let distance = now.abs_diff(sent);
    match distance > TOLERANCE.as_secs() {
        false => Ok(()),
        true if sent < now => Err(VerifyError::TooOld(distance)),
        true => Err(VerifyError::TooNew(distance)),
    }
}

#[derive(Clone, Copy)]
enum Version {
    V1,
    V1a,
}

impl Version {
    fn fits(self, key: &VerifyingKey) -> bool {
        matches!((self, key), (Self::V1, VerifyingKey::Symmetric(_)) | (Self::V1a, VerifyingKey::Ed25519(_)))
    }
}

struct Signature {
    version: Version,
    bytes: Vec<u8>,
}

impl Signature {
    /// `None` for a version that is not known, which may stand beside known ones, and for what is no base64.
    fn parse(text: &str) -> Option<Self> {
        let (version, encoded) = text.split_once(',')?;
        let version = match version {
            "v1" => Version::V1,
            "v1a" => Version::V1a,
            _ => return None,
        };
        Some(Self { version, bytes: STANDARD.decode(encoded).ok()? })
    }
}

impl VerifyingKey {
    fn verifies(&self, content: &Content<'_>, signature: &[u8]) -> bool {
        match self {
            Self::Symmetric(mac) => {
                let mut mac: Mac = mac.clone();
                content.parts().into_iter().for_each(|part| mac.update(part));
                mac.verify_slice(signature).is_ok()
            }
            Self::Ed25519(key) => {
                UnparsedPublicKey::new(&ED25519, key).verify(&content.whole(), signature).is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Signer, SigningSecret};
    use super::*;

    const ONE: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1/0MP7gxCbk=";
    const SECRET_KEY: &str = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc=";
    const PUBLIC_KEY: &str = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
    const NOW: i64 = 1_614_265_330;

    fn sign(secrets: &[&str], timestamp: i64, body: &[u8]) -> String {
        let secrets: Vec<SigningSecret> = secrets.iter().map(|&secret| secret.into()).collect();
        Signer::new(&secrets).unwrap().sign("msg_1", timestamp, body)
    }

    fn verify(secrets: &[&str], signature: &str, timestamp: &str, body: &[u8]) -> Result<(), VerifyError> {
        let secrets: Vec<SecretString> = secrets.iter().map(|&secret| secret.into()).collect();
        let headers = SignatureHeaders { id: "msg_1", timestamp, signature };
        Verifier::new(&secrets).unwrap().verify(&headers, body, NOW)
    }

    fn check(secrets: &[&str], signature: &str) -> Result<(), VerifyError> {
        verify(secrets, signature, &NOW.to_string(), b"{}")
    }

    #[test]
    fn both_versions_are_verified_by_whoever_has_the_key() {
        check(&[ONE], &sign(&[ONE], NOW, b"{}")).unwrap();
        check(&[PUBLIC_KEY], &sign(&[SECRET_KEY], NOW, b"{}")).unwrap();
        check(&[SECRET_KEY], &sign(&[SECRET_KEY], NOW, b"{}")).unwrap();
        check(&[ONE, PUBLIC_KEY], &sign(&[OTHER, SECRET_KEY], NOW, b"{}")).unwrap();
    }

    #[test]
    fn the_signatures_of_the_reference_implementation_are_verified() {
        let oracle = standardwebhooks::Webhook::new(ONE).unwrap().sign("msg_1", NOW, b"{}").unwrap();
        check(&[ONE], &oracle).unwrap();
    }

    #[test]
    fn another_secret_or_another_body_does_not_fit() {
        for (secret, signer) in [(ONE, OTHER), (PUBLIC_KEY, SECRET_KEY)] {
            let signed = sign(&[signer], NOW, b"{ }");
            assert_eq!(check(&[secret], &signed), Err(VerifyError::NoMatch));
        }
        let cut = sign(&[ONE], NOW, b"{}").replace("v1,", "v1,AAAA");
        assert_eq!(check(&[ONE], &cut), Err(VerifyError::NoMatch));
    }

    #[test]
    fn a_version_is_never_taken_for_the_other() {
        let symmetric = sign(&[ONE], NOW, b"{}");
        assert_eq!(check(&[PUBLIC_KEY], &symmetric), Err(VerifyError::OtherVersion));
        assert_eq!(check(&[ONE], &symmetric.replace("v1,", "v1a,")), Err(VerifyError::OtherVersion));
        assert_eq!(check(&[ONE], "v2,abc nonsense v1"), Err(VerifyError::OtherVersion));
    }

    #[test]
    fn what_is_not_known_may_stand_beside_what_is() {
        let signature = format!("v9,abc v1,??? , {}", sign(&[ONE], NOW, b"{}"));
        check(&[ONE], &signature).unwrap();
    }

    #[test]
    fn a_timestamp_is_accepted_up_to_five_minutes_off_in_both_directions() {
        for (offset, expected) in [
            (-301, Err(VerifyError::TooOld(301))),
            (-300, Ok(())),
            (300, Ok(())),
            (301, Err(VerifyError::TooNew(301))),
        ] {
            let at = NOW + offset;
            assert_eq!(verify(&[ONE], &sign(&[ONE], at, b"{}"), &at.to_string(), b"{}"), expected);
        }
        for timestamp in ["soon", "+1614265330", "1614265330.0", "-1", " 1614265330", "99999999999999999999"]
        {
            assert_eq!(verify(&[ONE], "v1,", timestamp, b"{}"), Err(VerifyError::MalformedTimestamp));
        }
    }

    #[test]
    fn bytes_cannot_be_moved_between_id_and_body() {
        let signer = Signer::new(&[ONE.into()]).unwrap();
        let number = format!("{NOW}.25");
        let signature = signer.sign("msg_1", NOW, number.as_bytes());
        let moved = SignatureHeaders {
            id: &format!("msg_1.{NOW}"),
            timestamp: &NOW.to_string(),
            signature: &signature,
        };
        let verifier = Verifier::new(&[ONE.into()]).unwrap();
        assert_eq!(verifier.verify(&moved, b"25", NOW), Err(VerifyError::MalformedId));
    }

    #[test]
    fn the_work_that_a_header_can_ask_for_is_bounded() {
        let signature = "v1,AAAA ".repeat(MAX_SIGNATURES) + &sign(&[ONE], NOW, b"{}");
        assert_eq!(check(&[ONE], &signature), Err(VerifyError::TooManySignatures));
    }

    #[test]
    fn a_header_that_is_missing_is_named() {
        let found = |missing: &'static str| {
            SignatureHeaders::find(move |name| Some(if name == missing { "" } else { "1" })).map(|_| ())
        };
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            assert_eq!(found(name), Err(VerifyError::MissingHeader(name)));
        }
        assert_eq!(found("none"), Ok(()));
    }

    #[test]
    fn through_a_rotation_every_receiver_verifies_with_whatever_it_has_by_then() {
        let old = || SigningSecret { until: Some(jiff::Timestamp::from_second(NOW).unwrap()), ..ONE.into() };
        let (first, during): ([SigningSecret; 1], [SigningSecret; 2]) = ([ONE.into()], [OTHER.into(), old()]);
        for (secrets, at, receivers) in [
            (&first[..], NOW - 20, &[&[ONE][..], &[ONE, OTHER]][..]),
            (&during, NOW - 10, &[&[ONE], &[ONE, OTHER], &[OTHER]]),
            (&during, NOW, &[&[ONE, OTHER], &[OTHER]]),
        ] {
            let signature = Signer::new(secrets).unwrap().sign("msg_1", at, b"{}");
            for receiver in receivers {
                verify(receiver, &signature, &at.to_string(), b"{}").unwrap();
            }
        }
    }
}
