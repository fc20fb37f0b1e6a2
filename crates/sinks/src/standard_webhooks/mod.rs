//! Standard Webhooks signatures, for both sides:
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.
//!
//! What is signed is `id.timestamp.body`. Version `v1` is HMAC-SHA256 with a secret that both sides have (`whsec_…`);
//! `v1a` is ed25519 with a key that only the sender has (`whsk_…`), for which the receiver has the public one (`whpk_…`).
//! The header carries one signature per secret that is active, and one that fits is enough: so secrets change without a
//! moment in which a receiver cannot verify.
//!
//! ```
//! use postbox_sinks::standard_webhooks::{SignatureHeaders, Signer, Verifier};
//!
//! let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
//! let (id, now, body) = ("0190f2a4-6c3e-7b1a-8c2d-000000000001", 1_764_547_200, b"{\"total\": 12}");
//! let signature = Signer::new(&[secret.into()])?.sign(id, now, body);
//!
//! let headers = SignatureHeaders { id, timestamp: "1764547200", signature: &signature };
//! Verifier::new(&[secret.into()])?.verify(&headers, body, now)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod secret;
mod signer;
mod verifier;

pub use secret::SecretError;
pub use signer::{MAX_SECRETS, Signer, SigningSecret};
pub use verifier::{MAX_SIGNATURES, SignatureHeaders, TOLERANCE, Verifier, VerifyError};
