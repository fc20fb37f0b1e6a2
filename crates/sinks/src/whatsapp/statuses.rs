//! Status webhooks: what Meta tells later of the messages it took.
//!
//! Meta calls a URL of ours, first to see whether it is ours (*Webhooks, Verification requests*) and then with
//! notifications signed with the app's secret (*Webhooks, Event notifications*; the shape is that of *Status messages
//! webhook reference*). A call may hold several entries, changes and statuses, of several numbers.

use jiff::Timestamp;
use postbox_core::callback::CallbackMark;
use postbox_core::reports::{MessageReport, MessageStatus};
use ring::{hmac, rand};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::numbers::shorten_numbers;
use crate::http_client::text::{beginning, one_line};

/// The header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-hub-signature-256";

/// Longest name of a message that is believed; Meta's have about 60 characters.
const MAX_WAMID_BYTES: usize = 512;

/// Longest kept title of an error, in bytes.
const MAX_TITLE_BYTES: usize = 300;

/// Longest challenge that is given back, in bytes; Meta's are numbers of ten digits.
const MAX_CHALLENGE_BYTES: usize = 256;

/// Why a call is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing in it says who it is from.
    #[error("it is not signed")]
    Unsigned,
    /// It is signed with another secret, or names another token.
    #[error("it is signed with another secret, or not by Meta")]
    Forged,
    /// It is no verification request.
    #[error("it is no verification request")]
    Malformed,
}

/// Knows Meta's calls from others.
pub struct Verifier {
    verify_token: SecretString,
    app_secrets: Vec<hmac::Key>,
    /// Of this process alone: what is compared under it tells nothing by the time it takes.
    blind: hmac::Key,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("app_secrets", &self.app_secrets.len()).finish_non_exhaustive()
    }
}

impl Verifier {
    /// With the token that was entered in Meta's console and the secrets of the app: two while it is changed.
    ///
    /// # Errors
    /// When one of them is empty, no app secret is given, or the system has no random numbers.
    pub fn new(verify_token: SecretString, app_secrets: &[SecretString]) -> Result<Self, &'static str> {
        if verify_token.expose_secret().is_empty() {
            return Err("the verify token is empty");
        }
        if app_secrets.is_empty() || app_secrets.iter().any(|secret| secret.expose_secret().is_empty()) {
            return Err("an app secret is missing or empty");
        }
        let key =
            |secret: &SecretString| hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
        let blind = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new())
            .map_err(|_| "the system has no random numbers")?;
        Ok(Self { verify_token, app_secrets: app_secrets.iter().map(key).collect(), blind })
    }

    /// What a verification request with this query is answered.
    ///
    /// # Errors
    /// When it is none, or names another token.
    pub fn challenge(&self, query: &str) -> Result<String, Refusal> {
        let parameter = |name: &str| {
            url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
        };
        let (mode, token) = (parameter("hub.mode"), parameter("hub.verify_token"));
        let challenge = parameter("hub.challenge").filter(|text| text.len() <= MAX_CHALLENGE_BYTES);
        let (Some("subscribe"), Some(token), Some(challenge)) = (mode.as_deref(), token, challenge) else {
            return Err(Refusal::Malformed);
        };
        let expected = hmac::sign(&self.blind, self.verify_token.expose_secret().as_bytes());
        hmac::verify(&self.blind, token.as_bytes(), expected.as_ref()).map_err(|_| Refusal::Forged)?;
        Ok(challenge.into_owned())
    }

    /// Checks the signature of a call over its raw body.
    ///
    /// # Errors
    /// When there is none, or it is not that of any of the secrets.
    pub fn check(&self, signature: Option<&str>, body: &[u8]) -> Result<(), Refusal> {
        let signature = signature.ok_or(Refusal::Unsigned)?;
        let tag = signature.strip_prefix("sha256=").and_then(from_hex).ok_or(Refusal::Forged)?;
        // All of them, so that the time does not tell which one fits.
        let fits =
            self.app_secrets.iter().fold(false, |fits, key| fits | hmac::verify(key, body, &tag).is_ok());
        if fits { Ok(()) } else { Err(Refusal::Forged) }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 || !bytes.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    bytes.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// What a notification holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notification {
    /// Statuses of messages, in order of message and moment.
    pub reports: Vec<MessageReport>,
    /// Statuses that cannot be read, or that mean nothing here.
    pub unread: usize,
    /// Anything else: messages of people, changes of templates and accounts.
    pub others: usize,
}

/// Reads a notification. Fields that are not known are left alone.
///
/// # Errors
/// When it is not JSON, or not an object with entries.
pub fn read(body: &[u8]) -> Result<Notification, &'static str> {
    let call: Value = serde_json::from_slice(body).map_err(|_| "the body is not JSON")?;
    let entries = call.get("entry").and_then(Value::as_array).ok_or("the body has no list `entry`")?;
    let mut notification = Notification::default();
    for change in entries.iter().filter_map(|entry| entry.get("changes")?.as_array()).flatten() {
        let value = change.get("value");
        let list = |name: &str| value.and_then(|value| value.get(name)).and_then(Value::as_array);
        let statuses = list("statuses");
        for status in statuses.into_iter().flatten() {
            match report(status) {
                Some(report) => notification.reports.push(report),
                None => notification.unread += 1,
            }
        }
        notification.others += list("messages").map_or(usize::from(statuses.is_none()), Vec::len);
    }
    // One order for all, so that calls that are taken in at once do not wait for each other in a circle.
    notification.reports.sort_by(|one, other| {
        let key = |report: &MessageReport| {
            (report.at, MessageStatus::ALL.iter().position(|status| *status == report.status))
        };
        one.external_id.cmp(&other.external_id).then_with(|| key(one).cmp(&key(other)))
    });
    Ok(notification)
}

fn report(status: &Value) -> Option<MessageReport> {
    let text = |name: &str| status.get(name).and_then(Value::as_str);
    let external_id = text("id").filter(|id| {
        (1..=MAX_WAMID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
    })?;
    let seconds = match status.get("timestamp")? {
        Value::String(text) => text.parse().ok()?,
        number => number.as_i64()?,
    };
    Some(MessageReport {
        external_id: external_id.to_owned(),
        mark: text("biz_opaque_callback_data").and_then(CallbackMark::parse),
        status: MessageStatus::parse(text("status")?)?,
        at: Timestamp::from_second(seconds).ok().filter(|at| at.as_second() >= 0)?,
        error: status.get("errors").and_then(|errors| error(errors.get(0)?)),
    })
}

fn error(error: &Value) -> Option<(i32, String)> {
    let code = i32::try_from(error.get("code")?.as_i64()?).ok()?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let title = text(error.get("title").or(error.get("message")));
    let details = text(error.get("error_data").and_then(|data| data.get("details")));
    let told = if details.is_empty() || details == title { title } else { format!("{title}: {details}") };
    let told = one_line(&shorten_numbers(&told));
    Some((code, beginning(&told, MAX_TITLE_BYTES).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = "0190f2a4-6c3e-7b1a-8c2d-000000000001";

    fn verifier() -> Verifier {
        Verifier::new("token-hunter2".into(), &["old".into(), "app-secret".into()]).unwrap()
    }

    const BODY: &[u8] = br#"{"entry":[]}"#;

    fn signed(secret: &str, body: &[u8]) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body);
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256={hex}")
    }

    #[test]
    fn a_signature_by_any_of_the_secrets_fits_and_nothing_else_does() {
        let verifier = verifier();
        for secret in ["old", "app-secret"] {
            assert_eq!(verifier.check(Some(&signed(secret, BODY)), BODY), Ok(()));
        }
        let upper = signed("old", BODY).to_uppercase().replace("SHA256", "sha256");
        assert_eq!(verifier.check(Some(&upper), BODY), Ok(()));
        assert_eq!(verifier.check(None, BODY), Err(Refusal::Unsigned));
        let fine = signed("old", BODY);
        for forged in
            [&signed("other", BODY), &signed("old", b"{}"), "sha256=", &fine[7..], &fine[..70], "sha1=ab"]
        {
            assert_eq!(verifier.check(Some(forged), BODY), Err(Refusal::Forged), "{forged}");
        }
        assert!(!format!("{verifier:?}").contains("hunter2"));
    }

    /// The vector of RFC 4231, test case 2.
    #[test]
    fn the_signature_is_hmac_sha_256() {
        let verifier = Verifier::new("t".into(), &["Jefe".into()]).unwrap();
        let tag = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(verifier.check(Some(tag), b"what do ya want for nothing?"), Ok(()));
    }

    #[test]
    fn only_a_subscription_with_the_token_gets_its_challenge_back() {
        let verifier = verifier();
        let fine = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=token-hunter2";
        assert_eq!(verifier.challenge(fine).as_deref(), Ok("1158201444"));
        for (query, refusal) in [
            ("", Refusal::Malformed),
            ("hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=token-hunter2", Refusal::Malformed),
            ("hub.mode=subscribe&hub.verify_token=token-hunter2", Refusal::Malformed),
            ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=token-hunter", Refusal::Forged),
            ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=", Refusal::Forged),
        ] {
            assert_eq!(verifier.challenge(query), Err(refusal), "{query}");
        }
        let long =
            format!("hub.mode=subscribe&hub.verify_token=token-hunter2&hub.challenge={}", "1".repeat(300));
        assert_eq!(verifier.challenge(&long), Err(Refusal::Malformed));
    }

    #[test]
    fn every_status_of_a_call_is_read_and_the_rest_is_counted() {
        let body = serde_json::json!({"object": "whatsapp_business_account", "entry": [
            {"id": "1", "changes": [
                {"field": "messages", "value": {"messaging_product": "whatsapp", "statuses": [
                    {"id": "wamid.B", "status": "read", "timestamp": "1750030073", "recipient_id": "4917012345",
                     "biz_opaque_callback_data": format!("pb1.{EVENT}.2"), "conversation": {"id": "x"}},
                    {"id": "wamid.A", "status": "failed", "timestamp": "1750030074", "recipient_id": "4917012345",
                     "errors": [{"code": 131026, "title": "Message undeliverable",
                                 "error_data": {"details": "Not to +49 170 1234567."}}]},
                    {"id": "wamid.A", "status": "sent", "timestamp": "1750030070"},
                ]}},
                {"field": "messages", "value": {"messages": [{"from": "4917012345", "text": {"body": "hi"}}]}},
            ]},
            {"id": "2", "changes": [
                {"field": "messages", "value": {"statuses": [
                    {"id": "wamid.C", "status": "deleted", "timestamp": "1"},
                    {"id": "wamid.C", "status": "sent", "timestamp": "soon"},
                    {"id": "", "status": "sent", "timestamp": "1"},
                    {"status": "sent"}, 7, null,
                ]}},
                {"field": "message_template_status_update", "value": {"event": "APPROVED"}},
            ]},
            {"id": "3"},
        ]});
        let read = read(&serde_json::to_vec(&body).unwrap()).unwrap();
        let told: Vec<_> =
            read.reports.iter().map(|report| (&*report.external_id, report.status.as_str())).collect();
        assert_eq!(told, [("wamid.A", "sent"), ("wamid.A", "failed"), ("wamid.B", "read")]);
        assert_eq!((read.unread, read.others), (6, 2));
        let mark = read.reports[2].mark.unwrap();
        assert_eq!((mark.event_id.to_string().as_str(), mark.attempt), (EVENT, 2));
        let (code, title) = read.reports[1].error.clone().unwrap();
        assert_eq!(code, 131_026);
        assert!(title.starts_with("Message undeliverable: Not to ") && !title.contains("1234567"), "{title}");
    }

    #[test]
    fn what_is_no_notification_is_refused() {
        for body in ["", "[]", "7", "{}", "{\"entry\":7}", "\u{0}"] {
            assert!(read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
