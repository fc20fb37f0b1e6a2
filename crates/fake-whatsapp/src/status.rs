//! Statuses: what Meta tells later of a message that it took.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;
use serde_json::{Value, json};

use crate::api::Settings;
use crate::ledger::Message;
use crate::refusal::title;

/// The header that carries the signature of a call.
pub const SIGNATURE_HEADER: &str = "x-hub-signature-256";

/// Most statuses in one change, and changes in one entry, of a call that holds many.
const PER_GROUP: usize = 2;

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// On its way.
    Sent,
    /// On a device.
    Delivered,
    /// Shown there.
    Read,
    /// Not delivered, with this error code.
    Failed(u32),
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Read => "read",
            Self::Failed(_) => "failed",
        }
    }

    /// The status object for `message`.
    pub(crate) fn object(self, message: &Message) -> Value {
        let mut status = json!({
            "id": message.wamid,
            "status": self.word(),
            "timestamp": now().to_string(),
            "recipient_id": message.to,
        });
        if let Some(data) = message.body.get("biz_opaque_callback_data") {
            status["biz_opaque_callback_data"] = data.clone();
        }
        if let Self::Failed(code) = self {
            status["errors"] = json!([{
                "code": code,
                "title": title(code),
                "message": title(code),
                "error_data": { "details": format!("{}.", title(code)) },
                "href": "/documentation/business-messaging/whatsapp/support/error-codes",
            }]);
            return status;
        }
        status["pricing"] =
            json!({ "billable": true, "pricing_model": "PMP", "type": "regular", "category": "utility" });
        status
    }
}

/// The body of a call with these statuses: one entry for one, and several entries of several changes for many.
pub(crate) fn call(settings: &Settings, statuses: &[Value]) -> String {
    let metadata = json!({
        "display_phone_number": settings.display_phone_number,
        "phone_number_id": settings.phone_number_id,
    });
    let changes: Vec<Value> = statuses
        .chunks(PER_GROUP)
        .map(|some| {
            let value = json!({ "messaging_product": "whatsapp", "metadata": metadata, "statuses": some });
            json!({ "value": value, "field": "messages" })
        })
        .collect();
    let entries: Vec<Value> = changes
        .chunks(PER_GROUP)
        .map(|some| json!({ "id": settings.business_account_id, "changes": some }))
        .collect();
    json!({ "object": "whatsapp_business_account", "entry": entries }).to_string()
}

/// The value of [`SIGNATURE_HEADER`] for `body`: `sha256=`, HMAC-SHA-256 with the app's secret, in hexadecimal.
#[must_use]
pub fn signature(app_secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, app_secret.as_bytes());
    let mut text = String::from("sha256=");
    for byte in hmac::sign(&key, body).as_ref() {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
