//! What an answer means.

use std::time::SystemTime;

use http::StatusCode;
use http::header::{HeaderMap, LOCATION};
use postbox_core::outcome::{Confirmation, Failure, FailureClass, Outcome};

use crate::http_client::text::{MAX_REASON_BYTES, beginning, kept_text, one_line};
use crate::http_client::{is_encoded, retry_after};

/// The outcome that status, headers and body stand for.
pub(super) fn outcome(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Outcome {
    if status.is_success() {
        return Outcome::Delivered(Confirmation { status: Some(status.as_u16()), external_id: None });
    }
    Outcome::Failed(Failure {
        status: Some(status.as_u16()),
        answer: if is_encoded(headers) { None } else { kept_text(body) },
        retry_after: retry_after(headers, now),
        ..Failure::new(class(status), one_line(&reason(status, headers)))
    })
}

fn class(status: StatusCode) -> FailureClass {
    match status.as_u16() {
        300..=399 => FailureClass::Permanent,
        401 | 403 | 404 => FailureClass::Misconfigured,
        408 | 425 | 429 | 500..=599 => FailureClass::Transient,
        410 => FailureClass::Gone,
        400..=499 => FailureClass::Rejected,
        // No final answer that HTTP knows; what the receiver did with the request is anyone's guess.
        _ => FailureClass::Unknown,
    }
}

fn reason(status: StatusCode, headers: &HeaderMap) -> String {
    let answered = match status.canonical_reason() {
        Some(words) => format!("answered {} {words}", status.as_u16()),
        None => format!("answered {}", status.as_u16()),
    };
    match status.as_u16() {
        300..=399 => {
            let target = headers.get(LOCATION).and_then(|value| value.to_str().ok()).map(without_query);
            let target = target.map_or_else(String::new, |target| format!(" (to {target})"));
            format!("{answered}{target}: redirects are never followed, correct the destination's URL")
        }
        401 | 403 | 404 => format!("{answered}: check the destination's URL, secret and headers"),
        410 => format!("{answered}: the receiver wants no more events"),
        400..=599 => answered,
        _ => format!("{answered}, which is no final answer to a POST"),
    }
}

/// A redirect's target may carry a token in its query.
fn without_query(location: &str) -> &str {
    let end = location.find(['?', '#']).unwrap_or(location.len());
    beginning(&location[..end], MAX_REASON_BYTES / 2)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderValue;

    use super::*;
    use crate::http_client::text::KEPT_BODY_BYTES;

    fn failure(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Failure {
        let headers = headers
            .iter()
            .map(|&(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect();
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        match outcome(StatusCode::from_u16(status).unwrap(), &headers, body, now) {
            Outcome::Failed(failure) => failure,
            other => panic!("{status} gave {other:?}"),
        }
    }

    #[test]
    fn every_status_has_the_class_the_failure_policy_names() {
        for (statuses, class) in [
            (&[408, 425, 429, 500, 502, 503, 504, 599][..], FailureClass::Transient),
            (&[400, 402, 405, 409, 413, 415, 422, 451, 499], FailureClass::Rejected),
            (&[401, 403, 404], FailureClass::Misconfigured),
            (&[410], FailureClass::Gone),
            (&[300, 301, 302, 303, 304, 307, 308, 399], FailureClass::Permanent),
            (&[101, 600, 999], FailureClass::Unknown),
        ] {
            for &status in statuses {
                assert_eq!(failure(status, &[], b"").class, class, "{status}");
            }
        }
    }

    #[test]
    fn every_2xx_is_a_confirmation() {
        for status in [200, 201, 202, 204, 299] {
            let outcome =
                outcome(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), b"", SystemTime::now());
            assert_eq!(outcome, Outcome::Delivered(Confirmation { status: Some(status), external_id: None }));
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date_and_clamped() {
        for (value, seconds) in [
            ("120", Some(120)),
            ("0", Some(1)),
            ("999999", Some(86_400)),
            ("99999999999999999999999999", Some(86_400)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(1)),
            ("soon", None),
            ("-5", None),
            ("1.5", None),
            ("", None),
        ] {
            let read = failure(503, &[("retry-after", value)], b"").retry_after;
            assert_eq!(read, seconds.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn a_redirect_names_its_target_without_what_may_be_secret() {
        let reason = failure(307, &[("location", "https://new.example/hooks?token=abc")], b"").reason;
        assert!(reason.contains("https://new.example/hooks)"), "{reason}");
        assert!(!reason.contains("abc"), "{reason}");
    }

    #[test]
    fn the_kept_answer_is_bounded_valid_text_without_nul() {
        assert_eq!(failure(500, &[], b"a\0b\xff").answer.as_deref(), Some("ab\u{fffd}"));
        assert_eq!(failure(500, &[], b"").answer, None);
        let long = failure(500, &[], &[0xff; KEPT_BODY_BYTES]).answer.unwrap();
        assert!(long.len() <= KEPT_BODY_BYTES);
    }
}
