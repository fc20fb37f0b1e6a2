//! Secrets and keys as people pass them on: a prefix that tells the kind, then base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

/// Bytes of a symmetric secret that the specification allows.
const SYMMETRIC_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Bytes of an ed25519 seed and of a public key (RFC 8032, 5.1.5).
const ED25519_BYTES: usize = 32;

/// HMAC-SHA256 with a key mixed in; a signature starts from a copy.
pub(super) type Mac = Hmac<Sha256>;

/// What signs.
pub(super) enum SigningKey {
    /// `whsec_`, version `v1`.
    Symmetric(Mac),
    /// `whsk_`, version `v1a`.
    Ed25519(Ed25519KeyPair),
}

/// What verifies.
pub(super) enum VerifyingKey {
    /// `whsec_`, version `v1`.
    Symmetric(Mac),
    /// `whpk_`, version `v1a`.
    Ed25519([u8; ED25519_BYTES]),
}

/// A secret that cannot be used; the message says what to write instead and repeats nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// There is none.
    #[error("is missing: at least one is needed")]
    Missing,
    /// There are more than [`super::MAX_SECRETS`].
    #[error("is one of {0}, and at most {max} sign at the same time", max = super::MAX_SECRETS)]
    TooMany(usize),
    /// Every one of them has an end, after which nothing would be signed any more.
    #[error(
        "would be the last one to expire, and then nothing would be signed: one of them must have no `until`"
    )]
    AllExpire,
    /// No base64 after the prefix.
    #[error(
        "is no Standard Webhooks secret: whsec_ followed by base64 (or whsk_ for ed25519). Make one with: \
         echo whsec_$(openssl rand -base64 32)"
    )]
    NotBase64,
    /// A symmetric secret of the wrong size, in bytes.
    #[error(
        "holds {0} bytes, a Standard Webhooks secret has 24 to 64. Make one with: \
         echo whsec_$(openssl rand -base64 32)"
    )]
    SymmetricBytes(usize),
    /// An ed25519 key of the wrong size, in bytes.
    #[error(
        "holds {0} bytes, a secret ed25519 key (whsk_) has 32 or, with its public key behind it, 64, and a public one \
         (whpk_) has 32"
    )]
    Ed25519Bytes(usize),
    /// The two halves of an ed25519 key do not belong together.
    #[error("is no ed25519 key: the public key in its second half is not that of the first")]
    Ed25519Halves,
    /// A public key where a secret one is needed.
    #[error("is a public key (whpk_), which can only verify: sign with its secret key (whsk_)")]
    PublicKey,
}

impl SigningKey {
    pub(super) fn parse(secret: &SecretString) -> Result<Self, SecretError> {
        match split(secret.expose_secret()) {
            (Kind::Symmetric, encoded) => symmetric(encoded).map(Self::Symmetric),
            (Kind::Ed25519Secret, encoded) => key_pair(encoded).map(Self::Ed25519),
            (Kind::Ed25519Public, _) => Err(SecretError::PublicKey),
        }
    }
}

impl VerifyingKey {
    pub(super) fn parse(secret: &SecretString) -> Result<Self, SecretError> {
        match split(secret.expose_secret()) {
            (Kind::Symmetric, encoded) => symmetric(encoded).map(Self::Symmetric),
            (Kind::Ed25519Public, encoded) => public(&decode(encoded)?).map(Self::Ed25519),
            (Kind::Ed25519Secret, encoded) => {
                public(key_pair(encoded)?.public_key().as_ref()).map(Self::Ed25519)
            }
        }
    }
}

enum Kind {
    Symmetric,
    Ed25519Secret,
    Ed25519Public,
}

/// Without a prefix it is taken for a symmetric one, as the reference libraries do.
fn split(text: &str) -> (Kind, &str) {
    if let Some(encoded) = text.strip_prefix("whsk_") {
        (Kind::Ed25519Secret, encoded)
    } else if let Some(encoded) = text.strip_prefix("whpk_") {
        (Kind::Ed25519Public, encoded)
    } else {
        (Kind::Symmetric, text.strip_prefix("whsec_").unwrap_or(text))
    }
}

fn decode(encoded: &str) -> Result<Vec<u8>, SecretError> {
    STANDARD.decode(encoded).map_err(|_| SecretError::NotBase64)
}

fn symmetric(encoded: &str) -> Result<Mac, SecretError> {
    let bytes = decode(encoded)?;
    if !SYMMETRIC_BYTES.contains(&bytes.len()) {
        return Err(SecretError::SymmetricBytes(bytes.len()));
    }
    Ok(Mac::new_from_slice(&bytes).expect("HMAC takes keys of any length"))
}

/// A seed, or a seed and its public key, which is the form that other senders hand out.
fn key_pair(encoded: &str) -> Result<Ed25519KeyPair, SecretError> {
    let bytes = decode(encoded)?;
    match bytes.split_at_checked(ED25519_BYTES) {
        Some((seed, [])) => Ed25519KeyPair::from_seed_unchecked(seed),
        Some((seed, public)) if public.len() == ED25519_BYTES => {
            Ed25519KeyPair::from_seed_and_public_key(seed, public)
        }
        _ => return Err(SecretError::Ed25519Bytes(bytes.len())),
    }
    .map_err(|_| SecretError::Ed25519Halves)
}

fn public(bytes: &[u8]) -> Result<[u8; ED25519_BYTES], SecretError> {
    bytes.try_into().map_err(|_| SecretError::Ed25519Bytes(bytes.len()))
}
