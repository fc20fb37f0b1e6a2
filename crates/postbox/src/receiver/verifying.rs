//! From a request to an event, or to the answer that it deserves instead.

use jiff::Timestamp;
use postbox_sinks::standard_webhooks::{SecretError, SignatureHeaders, Verifier};
use secrecy::SecretString;

use super::{Answer, Incoming};

/// Largest body that is read unless told otherwise: room for any payload that is sensible in a webhook.
pub const DEFAULT_MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Knows whom to believe. Make one at the start and share it.
#[derive(Debug)]
pub struct Receiver {
    verifier: Verifier,
    max_body_bytes: usize,
}

impl Receiver {
    /// A receiver that believes each of these secrets: `whsec_…`, or the sender's public key `whpk_…`. During a
    /// rotation, the new one and the old one.
    ///
    /// # Errors
    /// When there is none or one cannot be used.
    pub fn new<S: Into<SecretString>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, SecretError> {
        let secrets: Vec<SecretString> = secrets.into_iter().map(Into::into).collect();
        Ok(Self { verifier: Verifier::new(&secrets)?, max_body_bytes: DEFAULT_MAX_BODY_BYTES })
    }

    /// Reads bodies of up to `bytes` instead of [`DEFAULT_MAX_BODY_BYTES`].
    #[must_use]
    pub fn max_body_bytes(self, bytes: usize) -> Self {
        Self { max_body_bytes: bytes, ..self }
    }

    /// The event in a request, if it is to be believed: `header` gives the value of a header by its name in lower case,
    /// and `body` is exactly what came in.
    ///
    /// # Errors
    /// The answer to give instead.
    pub fn open<'a>(
        &self,
        header: impl FnMut(&'static str) -> Option<&'a str>,
        body: &[u8],
    ) -> Result<Incoming, Answer> {
        self.open_at(header, body, Timestamp::now().as_second())
    }

    fn open_at<'a>(
        &self,
        header: impl FnMut(&'static str) -> Option<&'a str>,
        body: &[u8],
        now: i64,
    ) -> Result<Incoming, Answer> {
        if body.len() > self.max_body_bytes {
            return Err(Answer::TooLarge);
        }
        let headers =
            SignatureHeaders::find(header).map_err(|error| Answer::Unauthorized(error.to_string()))?;
        self.verifier.verify(&headers, body, now).map_err(|error| Answer::Unauthorized(error.to_string()))?;
        let incoming = Incoming::parse(body).map_err(Answer::Malformed)?;
        if headers.id.parse() != Ok(incoming.event_id) {
            return Err(Answer::Malformed("webhook-id is not the event_id of the body".into()));
        }
        Ok(incoming)
    }

    /// Bytes of a body that are read at most.
    #[cfg(feature = "axum")]
    pub(super) fn body_limit(&self) -> usize {
        self.max_body_bytes
    }
}

#[cfg(test)]
mod tests {
    use postbox_sinks::standard_webhooks::{Signer, SigningSecret};

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "0198f0c2-7d2e-7c31-9d60-0d6f3f0a51c4";
    const NOW: i64 = 1_767_323_045;

    fn body() -> String {
        format!(
            r#"{{"event_id":"{ID}","type":"order.confirmed","timestamp":"2026-01-02T03:04:05.678901Z","aggregate_type":"order","aggregate_id":"4711","sequence":2,"data":{{"total": 42.00}}}}"#
        )
    }

    fn open(receiver: &Receiver, id: &str, body: &str, secret: &str) -> Result<Incoming, Answer> {
        let secret: SigningSecret = secret.into();
        let signature = Signer::new(&[secret]).unwrap().sign(id, NOW, body.as_bytes());
        let timestamp = NOW.to_string();
        let header = |name: &str| match name {
            "webhook-id" => Some(id),
            "webhook-timestamp" => Some(timestamp.as_str()),
            "webhook-signature" => Some(signature.as_str()),
            _ => None,
        };
        receiver.open_at(header, body.as_bytes(), NOW)
    }

    #[test]
    fn a_signed_event_is_read_with_its_payload_untouched() {
        let receiver = Receiver::new([SECRET]).unwrap();
        let event = open(&receiver, ID, &body(), SECRET).unwrap();
        assert_eq!(event.event_id.to_string(), ID);
        assert_eq!((event.event_type.as_str(), event.sequence), ("order.confirmed", 2));
        assert_eq!(event.data.get(), r#"{"total": 42.00}"#);
        assert_eq!(event.place().aggregate_id, "4711");
    }

    #[test]
    fn what_is_not_to_be_believed_is_answered_by_its_class() {
        let receiver = Receiver::new([SECRET]).unwrap().max_body_bytes(1_000);
        let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1/0MP7gxCbk=";
        let status = |answer: Result<Incoming, Answer>| answer.unwrap_err().status();
        assert_eq!(status(open(&receiver, ID, &body(), other)), 401);
        assert_eq!(status(receiver.open_at(|_| None, body().as_bytes(), NOW)), 401);
        assert_eq!(status(open(&receiver, ID, "[]", SECRET)), 400);
        assert_eq!(status(open(&receiver, &ID.replace('4', "5"), &body(), SECRET)), 400);
        assert_eq!(status(open(&receiver, ID, &" ".repeat(1_001), SECRET)), 413);
    }
}
