use http::HeaderValue;
use serde_json::json;

use super::super::errors::ERRORS;
use super::*;

fn answered(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Outcome {
    let headers =
        headers.iter().map(|&(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
    let answer = Answer {
        status: StatusCode::from_u16(status).unwrap(),
        headers: headers.collect(),
        body: body.to_vec(),
        complete: true,
    };
    outcome(&answer, SystemTime::UNIX_EPOCH)
}

fn failure(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Failure {
    match answered(status, headers, body) {
        Outcome::Failed(failure) => failure,
        other => panic!("{status} gave {other:?}"),
    }
}

fn error(code: u32, subcode: Option<u32>) -> Vec<u8> {
    let details = "Recipient +49 170 1234567 is not in the allowed list";
    let mut body = json!({"error": {
        "message": format!("(#{code}) Something is wrong"),
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": details},
        "fbtrace_id": "Az8or2yhqkZfEZ-_4Qn_Bam",
    }});
    if let Some(subcode) = subcode {
        body["error"]["error_subcode"] = subcode.into();
    }
    body.to_string().into_bytes()
}

#[test]
fn a_message_id_is_a_confirmation_and_nothing_else_is() {
    let accepted =
        br#"{"messaging_product":"whatsapp","contacts":[{"input":"+491701234567","wa_id":"491701234567"}],
        "messages":[{"id":"wamid.HBgLMTY1MA==","message_status":"accepted"}]}"#;
    let external_id = Some("wamid.HBgLMTY1MA==".to_owned());
    let delivered = Outcome::Delivered(Confirmation { status: Some(200), external_id });
    assert_eq!(answered(200, &[], accepted), delivered);
    let endless = [accepted.as_slice(), &[b'x'; 5_000]].concat();
    assert_eq!(answered(200, &[], &endless), delivered, "what follows a whole answer changes nothing");
    for body in [
        &b""[..],
        b"<html>",
        b"{}",
        b"[]",
        b"{\"success\":true}",
        b"{\"messages\":[]}",
        b"{\"messages\":[{\"id\":\"\"}]}",
        b"{\"messages\":[{\"id\":7}]}",
        b"{\"messages\":[{\"id\":\"a b\"}]}",
        b"{\"messages\":[{\"id\":\"wamid.HBgLMTY1MA==\"}]",
        b"{\"error\":{\"code\":131026}}",
        b"\xff\xfe",
        &[b'['; 16_000],
    ] {
        let failure = failure(200, &[], body);
        assert_eq!(failure.class, FailureClass::Unknown, "{failure:?}");
        assert!(failure.reason.contains("may have taken the message"), "{failure:?}");
    }
    let encoded = failure(200, &[("content-encoding", "gzip")], accepted);
    assert_eq!((encoded.class, encoded.answer), (FailureClass::Unknown, None));
}

#[test]
fn every_row_of_the_table_decides_whatever_the_status_is() {
    for row in ERRORS {
        for status in [400, 401, 403, 404, 429, 500, 503] {
            let failure = failure(status, &[], &error(row.first, row.subcode));
            assert_eq!((failure.class, failure.scope), (row.class, row.scope), "{row:?}");
            assert_eq!(failure.retry_after, row.wait, "{row:?}");
            assert_eq!(failure.status, Some(status));
            let code = match row.subcode {
                Some(subcode) => format!("error {}/{subcode} (", row.first),
                None => format!("error {} (", row.first),
            };
            assert!(failure.reason.contains(&code), "{failure:?}");
        }
    }
}

#[test]
fn a_reason_has_title_details_and_trace_but_no_number_of_a_person() {
    let failure = failure(400, &[], &error(131_030, None));
    assert_eq!(
        failure.reason,
        "answered 400, error 131030 (Something is wrong): Recipient …67 is not in the allowed list; \
         fbtrace Az8or2yhqkZfEZ-_4Qn_Bam"
    );
    let kept = failure.answer.unwrap();
    assert!(kept.contains("…67") && kept.contains("131030") && !kept.contains("123456"), "{kept}");
}

#[test]
fn a_reason_is_bounded_and_keeps_its_trace() {
    let body = json!({"error": {
        "code": 131_009,
        "message": "x\n".repeat(400),
        "error_data": {"details": "ü".repeat(2_000)},
        "fbtrace_id": "AbC",
    }});
    let reason = failure(400, &[], body.to_string().as_bytes()).reason;
    assert!(reason.len() <= MAX_REASON_BYTES && reason.ends_with("; fbtrace AbC"), "{reason}");
    assert!(!reason.chars().any(char::is_control), "{reason}");
    let strange = json!({"error": {"code": 2, "fbtrace_id": "a\nb", "message": 7, "error_data": "x"}});
    let reason = failure(500, &[], strange.to_string().as_bytes()).reason;
    assert_eq!(reason, "answered 500, error 2 (the API is down or overloaded)");
}

#[test]
fn without_a_known_code_the_status_decides() {
    use FailureClass::{Gone, Misconfigured, Rejected, Suspended, Throttled, Transient, Unknown};
    for (statuses, bare, unknown_code) in [
        (&[500, 503, 599][..], Transient, Transient),
        (&[502, 504], Unknown, Transient),
        (&[408, 425], Transient, Transient),
        (&[429], Throttled, Throttled),
        (&[401, 403], Suspended, Suspended),
        (&[404, 301, 307], Misconfigured, Misconfigured),
        (&[410], Gone, Gone),
        (&[400, 402, 413, 422], Rejected, Rejected),
        (&[101, 600, 999], Unknown, Unknown),
    ] {
        for &status in statuses {
            assert_eq!(failure(status, &[], b"<html>").class, bare, "{status}");
            assert_eq!(failure(status, &[], &error(999_999, None)).class, unknown_code, "{status}");
            assert_eq!(failure(status, &[], br#"{"error":{"code":"131026"}}"#).class, bare, "{status}");
        }
    }
    assert_eq!(failure(429, &[], b"").scope, Scope::Destination);
    let passing = json!({"error": {"code": 999_999, "is_transient": true}}).to_string();
    assert_eq!(failure(400, &[], passing.as_bytes()).class, Transient);
}

#[test]
fn the_longest_wait_that_was_asked_for_holds() {
    let limit = error(80_007, None);
    let usage = r#"{"1":[{"type":"messages","estimated_time_to_regain_access":19},{"type":"x"}],"2":3}"#;
    let wait = |headers: &[(&'static str, &'static str)]| {
        failure(429, headers, &limit).retry_after.unwrap().as_secs()
    };
    assert_eq!(wait(&[]), 300);
    assert_eq!(wait(&[("retry-after", "10")]), 300);
    assert_eq!(wait(&[("retry-after", "900")]), 900);
    assert_eq!(wait(&[("x-business-use-case-usage", usage)]), 19 * 60);
    assert_eq!(
        wait(&[("x-business-use-case-usage", r#"{"1":[{"estimated_time_to_regain_access":0}]}"#)]),
        300
    );
    let far = r#"{"1":[{"estimated_time_to_regain_access":18446744073709551615}]}"#;
    assert_eq!(wait(&[("x-business-use-case-usage", far)]), 86_400);
    for strange in ["", "[", "[]", "null", r#"{"1":1}"#] {
        assert_eq!(
            failure(429, &[("x-business-use-case-usage", strange)], &limit).retry_after.unwrap().as_secs(),
            300
        );
    }
}
