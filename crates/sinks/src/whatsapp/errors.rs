//! Meta's error codes and what each one means for a delivery.
//!
//! The table is data: [`ERRORS`]. A failure is judged by the code in the answer's body, because Meta gives one HTTP status
//! to very different errors; only where no code can be read does the status decide. `docs/whatsapp.md` shows the same table,
//! and a test holds both together.
//!
//! How the classes were chosen:
//! - **transient**: the API says that it failed and did not take the message; the schedule decides.
//! - **throttled**: a limit on how much may be sent; waits at the limit's own scope and uses up no attempt.
//! - **rejected** with a long wait: refused for a reason that passes, but perhaps never: a few attempts, far apart, then a
//!   dead letter. Throttling would repeat them without end, and the lane would wait behind them without end.
//! - **permanent**: this message to this person will never be taken; a dead letter, and the lane goes on.
//! - **suspended**: every message would fail until somebody acts; the destination is disabled and keeps everything.

use std::time::Duration;

use postbox_core::outcome::{FailureClass, Scope};

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRow {
    /// The code (`error.code`), or the first of a range.
    pub first: u32,
    /// The last code of the range; the same as `first` for one code.
    pub last: u32,
    /// Only with this subcode (`error.error_subcode`).
    pub subcode: Option<u32>,
    /// What the failure policy decides on.
    pub class: FailureClass,
    /// Whom a limit concerns.
    pub scope: Scope,
    /// Shortest wait before the next attempt; `None` leaves it to the schedule, or for a limit on one lane to the engine.
    pub wait: Option<Duration>,
    /// What it means, in our words.
    pub meaning: &'static str,
    /// The page of Meta's documentation that has it, by title.
    pub source: &'static str,
}

impl ErrorRow {
    /// The code as people write it: `131026`, `200–299`, `100/33` with a subcode.
    #[must_use]
    pub fn code(&self) -> String {
        match (self.subcode, self.last == self.first) {
            (Some(subcode), _) => format!("{}/{subcode}", self.first),
            (None, true) => self.first.to_string(),
            (None, false) => format!("{}–{}", self.first, self.last),
        }
    }
}

/// The row of an error: the one with its subcode before the one of the code alone.
#[must_use]
pub fn find(code: i64, subcode: Option<i64>) -> Option<&'static ErrorRow> {
    let code = u32::try_from(code).ok()?;
    let subcode = subcode.and_then(|subcode| u32::try_from(subcode).ok());
    let has_code = |row: &&ErrorRow| (row.first..=row.last).contains(&code);
    let with_subcode =
        ERRORS.iter().filter(has_code).find(|row| row.subcode.is_some() && row.subcode == subcode);
    with_subcode.or_else(|| ERRORS.iter().filter(has_code).find(|row| row.subcode.is_none()))
}

/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes>
const CODES: &str = "WhatsApp error codes";
/// <https://developers.facebook.com/docs/graph-api/guides/error-handling>
const GRAPH: &str = "Graph API: Handle errors";
/// <https://developers.facebook.com/docs/graph-api/overview/rate-limiting>
const RATES: &str = "Graph API: Rate limits";
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput>
const THROUGHPUT: &str = "WhatsApp: Throughput";
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/templates/template-pausing>
const PAUSING: &str = "WhatsApp: Template pausing";

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

const fn row(code: u32, class: FailureClass, meaning: &'static str, source: &'static str) -> ErrorRow {
    ErrorRow {
        first: code,
        last: code,
        subcode: None,
        class,
        scope: Scope::Lane,
        wait: None,
        meaning,
        source,
    }
}

const fn transient(code: u32, meaning: &'static str, source: &'static str) -> ErrorRow {
    row(code, FailureClass::Transient, meaning, source)
}

const fn permanent(code: u32, meaning: &'static str) -> ErrorRow {
    row(code, FailureClass::Permanent, meaning, CODES)
}

const fn suspended(code: u32, meaning: &'static str, source: &'static str) -> ErrorRow {
    row(code, FailureClass::Suspended, meaning, source)
}

const fn throttled(
    code: u32,
    scope: Scope,
    wait: Option<Duration>,
    meaning: &'static str,
    source: &'static str,
) -> ErrorRow {
    ErrorRow { scope, wait, ..row(code, FailureClass::Throttled, meaning, source) }
}

const fn deferred(code: u32, wait: Duration, meaning: &'static str, source: &'static str) -> ErrorRow {
    ErrorRow { wait: Some(wait), ..row(code, FailureClass::Rejected, meaning, source) }
}

/// Every code that is known here, by class.
pub static ERRORS: &[ErrorRow] = &[
    transient(1, "the API failed for a reason that it does not know", CODES),
    transient(2, "the API is down or overloaded", CODES),
    transient(131_000, "sending failed for a reason that Meta does not know", CODES),
    transient(131_016, "a service that sending needs is not available", CODES),
    transient(133_004, "the server is not available for now", CODES),
    throttled(4, Scope::Account, Some(minutes(5)), "the app has made too many calls", CODES),
    throttled(17, Scope::Account, Some(minutes(5)), "the token's user has made too many calls", GRAPH),
    throttled(341, Scope::Account, Some(minutes(5)), "the app has reached a limit for now", GRAPH),
    throttled(613, Scope::Account, Some(minutes(5)), "too many calls of this kind", RATES),
    throttled(
        80_007,
        Scope::Account,
        Some(minutes(5)),
        "the WhatsApp Business Account has reached its limit",
        CODES,
    ),
    throttled(
        130_429,
        Scope::Destination,
        Some(seconds(5)),
        "the number's throughput is reached",
        THROUGHPUT,
    ),
    throttled(
        131_057,
        Scope::Destination,
        Some(MINUTE),
        "the number is in maintenance, perhaps upgraded",
        THROUGHPUT,
    ),
    throttled(
        131_048,
        Scope::Destination,
        Some(HOUR),
        "the number may send less, as too much was blocked or reported",
        CODES,
    ),
    throttled(131_056, Scope::Lane, None, "too many messages from this number to this person", CODES),
    deferred(131_049, hours(24), "kept from this person, who gets enough marketing already", CODES),
    deferred(
        132_015,
        hours(3),
        "the template is paused for low quality: 3 hours, then 6, then for good",
        PAUSING,
    ),
    deferred(132_069, hours(1), "the flow in the template may be sent 10 times an hour for now", CODES),
    permanent(130_472, "the person is part of an experiment and gets no such message"),
    permanent(130_497, "the account may not send to people in this country"),
    permanent(131_021, "recipient and sender are the same number"),
    permanent(131_026, "cannot be delivered: no WhatsApp, an old version, or terms not accepted"),
    permanent(131_030, "the recipient is not on the list that a test number may send to"),
    permanent(131_047, "24 hours have passed since the person wrote: only templates may be sent"),
    permanent(131_050, "the person wants no marketing from this business"),
    permanent(100, "a parameter is unknown, misspelled or of the wrong kind"),
    permanent(131_008, "a required parameter is missing"),
    permanent(131_009, "a parameter has a value that is not allowed"),
    permanent(131_051, "this type of message is not supported"),
    permanent(131_052, "the media of the message could not be downloaded"),
    permanent(131_053, "the media of the message could not be uploaded"),
    permanent(132_000, "the template has another number of parameters"),
    permanent(132_001, "there is no such template in this language, or it is not approved"),
    permanent(132_005, "the template's text is too long with these parameters"),
    permanent(132_007, "the template's content violates a policy on characters or format"),
    permanent(132_012, "a parameter is not formatted as the template wants it"),
    permanent(132_016, "the template was paused too often and is disabled for good"),
    permanent(132_068, "the flow in the template is blocked"),
    permanent(135_000, "something in the request's parameters is wrong, Meta does not say what"),
    suspended(0, "the access token is invalid", CODES),
    suspended(3, "the app lacks a capability or permission", CODES),
    suspended(10, "a permission is not granted or was removed", CODES),
    suspended(33, "the phone number was deleted", CODES),
    ErrorRow {
        subcode: Some(33),
        ..suspended(100, "the phone number id does not exist, or the token may not use it", GRAPH)
    },
    suspended(102, "the token's session has ended", GRAPH),
    suspended(190, "the access token has expired or was revoked", CODES),
    ErrorRow { last: 299, ..suspended(200, "a permission is not granted or was removed", CODES) },
    suspended(368, "the account is blocked for violating a policy", CODES),
    suspended(131_005, "access is denied: a permission is missing", CODES),
    suspended(131_031, "the account is locked or restricted", CODES),
    suspended(131_037, "the number's display name is not approved", CODES),
    suspended(131_042, "the account has a problem with its payment method", CODES),
    suspended(131_045, "the number is not registered: its certificate is wrong", CODES),
    suspended(133_010, "the number is not registered for the Cloud API", CODES),
];

const fn seconds(count: u32) -> Duration {
    SECOND.saturating_mul(count)
}

const fn minutes(count: u32) -> Duration {
    MINUTE.saturating_mul(count)
}

const fn hours(count: u32) -> Duration {
    HOUR.saturating_mul(count)
}

#[cfg(test)]
mod tests {
    use postbox_core::duration::show_duration;
    use postbox_core::retry::RETRY_AFTER_MAX;

    use super::*;

    #[test]
    fn every_code_has_one_row_and_is_found_by_it() {
        for (at, row) in ERRORS.iter().enumerate() {
            assert!(row.first <= row.last, "{row:?}");
            for code in [row.first, row.last] {
                assert_eq!(find(code.into(), row.subcode.map(i64::from)), Some(row), "{code}");
            }
            for other in &ERRORS[at + 1..] {
                let apart = other.last < row.first || row.last < other.first || other.subcode != row.subcode;
                assert!(apart, "{row:?} and {other:?}");
            }
        }
        for unknown in [-1, 5, 199, 300, 131_999, i64::MAX, i64::MIN] {
            assert_eq!(find(unknown, None), None, "{unknown}");
        }
        assert_eq!(find(100, Some(33)).map(|row| row.class), Some(FailureClass::Suspended));
        assert_eq!(find(100, Some(34)).map(|row| row.class), Some(FailureClass::Permanent));
    }

    #[test]
    fn only_limits_have_a_scope_and_only_they_and_deferrals_a_wait() {
        for row in ERRORS {
            let limit = row.class == FailureClass::Throttled;
            assert!(limit || row.scope == Scope::Lane, "{row:?}");
            assert!(limit || row.class == FailureClass::Rejected || row.wait.is_none(), "{row:?}");
            assert!(row.wait.is_none_or(|wait| wait <= RETRY_AFTER_MAX), "{row:?}");
            assert!(row.meaning.len() <= 80 && !row.source.is_empty(), "{row:?}");
        }
    }

    #[test]
    fn the_table_in_the_documentation_is_this_one() {
        let mut table = String::from(
            "| code | class | scope | wait | meaning | Meta's page |\n|---|---|---|---|---|---|\n",
        );
        for row in ERRORS {
            let scope = match (row.class, row.scope) {
                (FailureClass::Throttled, Scope::Lane) => "lane",
                (FailureClass::Throttled, Scope::Destination) => "destination",
                (FailureClass::Throttled, Scope::Account) => "account",
                _ => "",
            };
            let wait = match (row.wait, row.class) {
                (Some(wait), _) => show_duration(wait),
                (None, FailureClass::Throttled) => "grows".to_owned(),
                (None, _) => String::new(),
            };
            let (code, class) = (row.code(), row.class.as_str());
            table.push_str(&format!(
                "| {code} | {class} | {scope} | {wait} | {} | {} |\n",
                row.meaning, row.source
            ));
        }
        let page = include_str!("../../../../docs/whatsapp.md");
        let shown = page.split("<!-- errors -->\n").nth(1).expect("the page has the table between two marks");
        assert!(shown == table, "docs/whatsapp.md should show:\n{table}");
    }
}
