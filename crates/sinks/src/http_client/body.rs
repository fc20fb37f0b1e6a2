//! What is read of an answer.

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use http::header::{CONTENT_ENCODING, HeaderMap, RETRY_AFTER};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use postbox_core::retry::{RETRY_AFTER_MAX, RETRY_AFTER_MIN};
use tokio::time::{Instant, timeout_at};

/// Bytes read of a body; the connection of a longer one is dropped.
pub(super) const MAX_BODY_BYTES: usize = 16 * 1024;

/// What could be read of a body.
pub(super) struct Body {
    /// The first bytes, at most [`MAX_BODY_BYTES`].
    pub(super) beginning: Vec<u8>,
    /// Whether it was read to its end, so that the connection can be used again.
    pub(super) complete: bool,
}

/// Reads a body as far as the bounds in bytes and time allow.
pub(super) async fn read(mut body: Incoming, deadline: Instant) -> Body {
    let mut beginning = Vec::new();
    loop {
        let frame = match timeout_at(deadline, body.frame()).await {
            Ok(None) => return Body { beginning, complete: true },
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) | Err(_) => return Body { beginning, complete: false },
        };
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_BODY_BYTES - beginning.len();
        beginning.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Body { beginning, complete: false };
        }
    }
}

/// Whether the body is compressed, unasked. It is never unpacked: a few bytes can stand for gigabytes.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity")
}

/// RFC 9110, 10.2.3: how long the peer asks to wait, in seconds or as an HTTP date; clamped, and ignored when it is
/// neither.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    headers.get(RETRY_AFTER).and_then(|value| wait(value, now))
}

fn wait(value: &HeaderValue, now: SystemTime) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let asked = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are still a long time.
        text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs)
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()
    };
    Some(asked.clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX))
}
