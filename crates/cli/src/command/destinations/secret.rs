//! Signing secrets: kept somewhere, or drawn.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postbox_core::endpoint::EndpointSecret;
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::ExposeSecret as _;

use crate::error::CommandError;
use crate::kept_secret::read_at;

/// Bytes of a drawn secret; the specification of Standard Webhooks allows 24 to 64.
const BYTES: usize = 32;

/// The signing secret kept at `place`, or a new one.
///
/// # Errors
/// When nothing is kept there, or the system gives no random numbers.
pub(super) fn choose(place: Option<&str>) -> Result<EndpointSecret, CommandError> {
    let text = match place {
        Some(place) => read_at("--secret", place)?.expose_secret().to_owned(),
        None => draw()?,
    };
    Ok(EndpointSecret { text, expires_at: None })
}

fn draw() -> Result<String, CommandError> {
    let mut bytes = [0_u8; BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
    Ok(format!("whsec_{}", STANDARD.encode(bytes)))
}
