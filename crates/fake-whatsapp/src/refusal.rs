//! Meta's errors, as the API words them.

use serde_json::{Value, json};

/// An error as it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// `error.code`.
    pub code: u32,
    /// `error.error_subcode`, which only some errors have.
    pub subcode: Option<u32>,
    /// `error.type`.
    pub kind: &'static str,
    /// `error.message`.
    pub message: String,
    /// `error.error_data.details`.
    pub details: Option<String>,
}

/// Codes with their status and title (Meta: WhatsApp error codes).
const TITLES: [(u32, u16, &str); 30] = [
    (0, 401, "AuthException"),
    (1, 400, "API Unknown"),
    (2, 503, "API Service"),
    (3, 500, "API Method"),
    (4, 400, "Application request limit reached"),
    (10, 403, "Permission Denied"),
    (100, 400, "Invalid parameter"),
    (190, 401, "Access token has expired"),
    (368, 403, "Temporarily blocked for policies violations"),
    (80_007, 400, "Rate limit issues"),
    (130_429, 429, "Rate limit hit"),
    (130_472, 400, "User's number is part of an experiment"),
    (131_000, 500, "Something went wrong"),
    (131_005, 403, "Access denied"),
    (131_008, 400, "Required parameter is missing"),
    (131_009, 400, "Parameter value is not valid"),
    (131_016, 500, "Service unavailable"),
    (131_021, 400, "Recipient cannot be sender"),
    (131_026, 400, "Message undeliverable"),
    (131_031, 403, "Account has been locked"),
    (131_047, 400, "Re-engagement message"),
    (131_048, 400, "Spam rate limit hit"),
    (131_049, 400, "This message was not delivered to maintain healthy ecosystem engagement."),
    (131_056, 400, "(Business Account, Consumer Account) pair rate limit hit"),
    (131_057, 500, "Account in maintenance mode"),
    (132_000, 400, "Number of parameters does not match the expected number of params"),
    (132_001, 404, "Template name does not exist in the translation"),
    (132_015, 400, "Template is Paused"),
    (133_004, 503, "Server Temporarily Unavailable"),
    (133_010, 400, "Phone number Not Registered"),
];

/// The title of a code; codes that are not known here have a general one.
pub(crate) fn title(code: u32) -> &'static str {
    known(code).map_or("An error occurred", |(_, _, title)| title)
}

fn known(code: u32) -> Option<(u32, u16, &'static str)> {
    TITLES.into_iter().find(|(known, _, _)| *known == code)
}

impl Refusal {
    /// The error `code` with its title and usual status.
    #[must_use]
    pub fn of(code: u32) -> Self {
        let (status, title) = known(code).map_or((400, title(code)), |(_, status, title)| (status, title));
        Self {
            status,
            code,
            subcode: None,
            kind: "OAuthException",
            message: format!("(#{code}) {title}"),
            details: None,
        }
    }

    /// The same with details.
    #[must_use]
    pub fn because(self, details: impl Into<String>) -> Self {
        Self { details: Some(details.into()), ..self }
    }

    /// The body of the answer.
    #[must_use]
    pub fn body(&self) -> Value {
        let mut error = json!({ "message": self.message, "type": self.kind, "code": self.code });
        if let Some(details) = &self.details {
            error["error_data"] = json!({ "messaging_product": "whatsapp", "details": details });
        }
        if let Some(subcode) = self.subcode {
            error["error_subcode"] = subcode.into();
        }
        error["fbtrace_id"] = "AFakeTraceOfNothing0001".into();
        json!({ "error": error })
    }
}
