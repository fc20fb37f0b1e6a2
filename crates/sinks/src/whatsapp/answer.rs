//! What an answer means.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::HeaderMap;
use postbox_core::outcome::{Confirmation, Failure, FailureClass, Outcome, Scope};
use postbox_core::retry::{RETRY_AFTER_MAX, RETRY_AFTER_MIN};
use serde_json::Value;

use super::errors::{self, ErrorRow};
use super::numbers::shorten_numbers;
use crate::http_client::text::{MAX_REASON_BYTES, beginning, kept_text, one_line};
use crate::http_client::{Answer, is_encoded, retry_after};

/// Longest message id that is believed; Meta's have about 60 characters.
const MAX_WAMID_BYTES: usize = 512;

/// Longest trace id that is repeated; Meta's have 23 characters.
const MAX_TRACE_BYTES: usize = 40;

/// How long limits on a business use case last (Meta: Graph API, Rate limits): an object whose values are lists with
/// `estimated_time_to_regain_access` in minutes.
const USAGE_HEADER: &str = "x-business-use-case-usage";

/// Largest such header that is looked at, in bytes.
const MAX_USAGE_BYTES: usize = 8 * 1024;

/// The outcome that an answer stands for.
pub(super) fn outcome(answer: &Answer, now: SystemTime) -> Outcome {
    let encoded = is_encoded(&answer.headers);
    // The first whole value: what follows it, without end perhaps, changes nothing.
    let body: Option<Value> = (!encoded)
        .then(|| serde_json::Deserializer::from_slice(&answer.body).into_iter().next()?.ok())
        .flatten();
    let kept = if encoded { None } else { kept_text(&answer.body).map(|text| shorten_numbers(&text)) };
    let failure = if answer.status.is_success() {
        if let Some(wamid) = body.as_ref().and_then(wamid) {
            let confirmation =
                Confirmation { status: Some(answer.status.as_u16()), external_id: Some(wamid.to_owned()) };
            return Outcome::Delivered(confirmation);
        }
        Failure::new(FailureClass::Unknown, without_wamid(answer, encoded, body.is_some()))
    } else {
        let error = body.as_ref().and_then(GraphError::of);
        refusal(answer.status, &answer.headers, error.as_ref(), now)
    };
    Outcome::Failed(Failure { status: Some(answer.status.as_u16()), answer: kept, ..failure })
}

/// The id of the message that was accepted.
fn wamid(body: &Value) -> Option<&str> {
    let wamid = body.get("messages")?.get(0)?.get("id")?.as_str()?;
    let fine = !wamid.is_empty() && wamid.len() <= MAX_WAMID_BYTES;
    (fine && wamid.bytes().all(|byte| byte.is_ascii_graphic())).then_some(wamid)
}

fn without_wamid(answer: &Answer, encoded: bool, json: bool) -> String {
    let why = if encoded {
        "in an encoding that nobody asked for"
    } else if json {
        "without a message id"
    } else if answer.complete {
        "with something that is not JSON"
    } else {
        "with a body that broke off"
    };
    format!("answered {} {why}: it may have taken the message", answer.status.as_u16())
}

/// What Meta says of an error; each field only if it is what the documentation says it is.
struct GraphError<'a> {
    code: i64,
    subcode: Option<i64>,
    message: &'a str,
    details: &'a str,
    trace: Option<&'a str>,
    is_transient: bool,
}

impl<'a> GraphError<'a> {
    fn of(body: &'a Value) -> Option<Self> {
        let error = body.get("error")?;
        let text = |value: Option<&'a Value>| value.and_then(Value::as_str).unwrap_or_default();
        Some(Self {
            code: error.get("code")?.as_i64()?,
            subcode: error.get("error_subcode").and_then(Value::as_i64),
            message: text(error.get("message")),
            details: text(error.get("error_data").and_then(|data| data.get("details"))),
            trace: error.get("fbtrace_id").and_then(Value::as_str).filter(|trace| is_trace(trace)),
            is_transient: error.get("is_transient").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    fn row(&self) -> Option<&'static ErrorRow> {
        errors::find(self.code, self.subcode)
    }

    /// The title, which Meta puts behind the code in `message`: `(#131026) Message undeliverable`.
    fn title(&self) -> &'a str {
        let title = self.message.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
        title.map_or(self.message, |(_, title)| title).trim()
    }
}

fn is_trace(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_TRACE_BYTES).contains(&text.len()) && text.bytes().all(fine)
}

fn refusal(
    status: StatusCode,
    headers: &HeaderMap,
    error: Option<&GraphError<'_>>,
    now: SystemTime,
) -> Failure {
    let row = error.and_then(GraphError::row);
    let (class, scope) = match (row, error) {
        (Some(row), _) => (row.class, row.scope),
        (None, Some(error)) if error.is_transient => (FailureClass::Transient, Scope::Lane),
        (None, _) => by_status(status, error.is_some()),
    };
    let asked = [retry_after(headers, now), regain_access(headers), row.and_then(|row| row.wait)];
    Failure {
        scope,
        retry_after: asked.into_iter().flatten().max(),
        ..Failure::new(class, reason(status, error, row))
    }
}

/// Where no code is known, the status decides.
fn by_status(status: StatusCode, has_code: bool) -> (FailureClass, Scope) {
    let class = match status.as_u16() {
        401 | 403 => FailureClass::Suspended,
        300..=399 | 404 => FailureClass::Misconfigured,
        410 => FailureClass::Gone,
        429 => return (FailureClass::Throttled, Scope::Destination),
        // RFC 9110, 15.6.3 and 15.6.5: a gateway that got no answer, or one it cannot read, does not know what became of
        // the request. Meta's own errors, which have a code, do.
        502 | 504 if !has_code => FailureClass::Unknown,
        408 | 425 | 500..=599 => FailureClass::Transient,
        400..=499 => FailureClass::Rejected,
        _ => FailureClass::Unknown,
    };
    (class, Scope::Lane)
}

fn reason(status: StatusCode, error: Option<&GraphError<'_>>, row: Option<&ErrorRow>) -> String {
    let status = status.as_u16();
    let Some(error) = error else {
        return match status {
            300..=399 => format!("answered {status}: redirects are never followed, correct `base_url`"),
            404 => "answered 404: check `base_url`, `version` and `phone_number_id`".to_owned(),
            401 | 403 => format!("answered {status} without an error code: check the access token"),
            _ => format!("answered {status} without an error code"),
        };
    };
    let code = match error.subcode {
        Some(subcode) => format!("{}/{subcode}", error.code),
        None => error.code.to_string(),
    };
    let mut said = format!("answered {status}, error {code}");
    let title = Some(error.title()).filter(|title| !title.is_empty());
    if let Some(title) = title.or(row.map(|row| row.meaning)) {
        said.push_str(&format!(" ({title})"));
    }
    if !error.details.is_empty() && error.details != error.title() {
        said.push_str(&format!(": {}", error.details));
    }
    let trace = error.trace.map_or_else(String::new, |trace| format!("; fbtrace {trace}"));
    let said = one_line(&shorten_numbers(&said));
    format!("{}{trace}", beginning(&said, MAX_REASON_BYTES - trace.len()))
}

/// The longest wait that the usage header announces.
fn regain_access(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(USAGE_HEADER)?.to_str().ok().filter(|text| text.len() <= MAX_USAGE_BYTES)?;
    let usage: Value = serde_json::from_str(text).ok()?;
    let cases = usage.as_object()?.values().filter_map(Value::as_array).flatten();
    let minutes = cases.filter_map(|case| case.get("estimated_time_to_regain_access")?.as_u64()).max()?;
    (minutes > 0)
        .then(|| Duration::from_secs(minutes.saturating_mul(60)).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests;
