//! The request's body: what the producer stored, and the mark.

use std::fmt;

use postbox_core::callback::CallbackMark;

use super::fields::Fields;
use super::{exact, short};

/// The field that Meta gives back with every status of the message.
pub(super) const CALLBACK_FIELD: &str = "biz_opaque_callback_data";

/// Why a payload cannot be sent: names the field, never its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    field: String,
    problem: String,
}

impl Refusal {
    pub(super) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "the payload {}", self.problem)
        } else {
            write!(f, "the payload's field `{}` {}", self.field, self.problem)
        }
    }
}

/// The body for `payload`: a request of the Cloud API as it is stored, or the short form of a template message.
///
/// Nothing in it depends on anything but the payload, the configuration and the mark, so a replay sends the same message.
pub(super) fn request(payload: &str, language: &str, mark: CallbackMark) -> Result<String, Refusal> {
    let fields = Fields::read("", payload)?;
    if fields.has(CALLBACK_FIELD) {
        let problem = "is set by Postbox, to recognise what is said of the message later: take it out";
        return Err(Refusal::new(CALLBACK_FIELD, problem));
    }
    if fields.has("messaging_product") || fields.has("type") {
        exact::check(&fields)?;
        return Ok(marked(payload, mark));
    }
    Ok(marked(&short::expand(&fields, language)?, mark))
}

/// `object`, a JSON object that is not empty, with the mark as one more field at its end and every other byte as it was.
fn marked(object: &str, mark: CallbackMark) -> String {
    let object = object.trim_end();
    let open = object.strip_suffix('}').unwrap_or(object);
    format!("{open},\"{CALLBACK_FIELD}\":\"{mark}\"}}")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn mark() -> CallbackMark {
        CallbackMark { event_id: Uuid::from_u128(7), attempt: 2 }
    }

    const MARK: &str = "pb1.00000000-0000-0000-0000-000000000007.2";

    fn refused(payload: &str) -> String {
        request(payload, "en_US", mark()).expect_err(payload).to_string()
    }

    #[test]
    fn an_exact_request_is_sent_as_it_was_stored_with_the_mark_behind_it() {
        let stored = "\n{ \"messaging_product\":\"whatsapp\", \"to\": \"+49 (170) 123-4567\",\"x\":1.50,\
                      \"type\":\"text\",\"text\":{\"body\":\"\\ud83d\\ude00 }\"}\t} \n";
        let sent = request(stored, "en_US", mark()).unwrap();
        let open = stored.trim_end().strip_suffix('}').unwrap();
        assert_eq!(sent, format!("{open},\"biz_opaque_callback_data\":\"{MARK}\"}}"));
        assert_eq!(request(stored, "de", mark()).unwrap(), sent);
    }

    #[test]
    fn the_short_form_becomes_a_template_message() {
        let short = r#"{"to":"+49 170 1234567","template":"order_shipped","params":["Ann \"A\"",3,"ü"]}"#;
        let sent: serde_json::Value = serde_json::from_str(&request(short, "de", mark()).unwrap()).unwrap();
        let expected = serde_json::json!({
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": "+491701234567",
            "type": "template",
            "template": {
                "name": "order_shipped",
                "language": {"code": "de"},
                "components": [{"type": "body", "parameters": [
                    {"type": "text", "text": "Ann \"A\""},
                    {"type": "text", "text": "3"},
                    {"type": "text", "text": "ü"},
                ]}],
            },
            "biz_opaque_callback_data": MARK,
        });
        assert_eq!(sent, expected);
    }

    #[test]
    fn named_parameters_keep_their_names_and_none_leave_the_component_out() {
        let named =
            r#"{"to":"491701234567","template":"hello","language":"pt_BR","params":{"name":"Ann","n":1}}"#;
        let sent: serde_json::Value = serde_json::from_str(&request(named, "de", mark()).unwrap()).unwrap();
        assert_eq!(sent["template"]["language"]["code"], "pt_BR");
        let parameters = serde_json::json!([
            {"type": "text", "parameter_name": "name", "text": "Ann"},
            {"type": "text", "parameter_name": "n", "text": "1"},
        ]);
        assert_eq!(sent["template"]["components"][0]["parameters"], parameters);
        for none in [
            r#"{"to":"491701234567","template":"hello"}"#,
            r#"{"to":"491701234567","template":"hello","params":[]}"#,
        ] {
            let sent: serde_json::Value =
                serde_json::from_str(&request(none, "de", mark()).unwrap()).unwrap();
            assert!(sent["template"].get("components").is_none(), "{sent}");
        }
    }

    #[test]
    fn what_the_cloud_api_takes_besides_templates_is_taken() {
        for payload in [
            r#"{"messaging_product":"whatsapp","to":"16505551234","text":{"body":"hi"}}"#,
            r#"{"messaging_product":"whatsapp","to":"16505551234","type":"image","image":{"id":"1"}}"#,
            r#"{"messaging_product":"whatsapp","to":"16505551234","type":"contacts","contacts":[]}"#,
            r#"{"messaging_product":"whatsapp","recipient":"US.13491208655302741918","type":"text","text":{"body":"x"}}"#,
            r#"{"messaging_product":"whatsapp","recipient_type":"group","to":"Y2FwaV9ncm91cDox","type":"text","text":{"body":"x"}}"#,
            r#"{"messaging_product":"whatsapp","to":"16505551234","type":"template","template":{"name":"a_1","language":{"code":"en"}}}"#,
            r#"{"messaging_product":"whatsapp","to":"16505551234","text":{"body":"\ud800"},"context":null}"#,
        ] {
            request(payload, "en_US", mark()).unwrap_or_else(|refusal| panic!("{payload}: {refusal}"));
        }
    }

    #[test]
    fn a_payload_that_cannot_be_sent_is_refused_with_its_field_and_not_its_value() {
        const SECRET: &str = "4917012345";
        for (payload, field, hint) in [
            ("", "", "no JSON object"),
            ("null", "", "no JSON object"),
            ("[1]", "", "no JSON object"),
            ("\"4917012345\"", "", "no JSON object"),
            ("{\"to\":", "", "no JSON object"),
            ("{}", "to", "is missing"),
            (r#"{"to":4917012345,"template":"a"}"#, "to", "must be a text"),
            (r#"{"to":"","template":"a"}"#, "to", "is empty"),
            (r#"{"to":"Ann 4917012345","template":"a"}"#, "to", "no phone number"),
            (r#"{"to":"123456","template":"a"}"#, "to", "7 to 15 digits"),
            (r#"{"to":"1234567890123456","template":"a"}"#, "to", "7 to 15 digits"),
            (r#"{"to":"01701234567","template":"a"}"#, "to", "country code"),
            (r#"{"to":"4917012345"}"#, "template", "is missing"),
            (r#"{"to":"4917012345","template":""}"#, "template", "is empty"),
            (r#"{"to":"4917012345","template":"Order Shipped"}"#, "template", "lower-case letters"),
            (r#"{"to":"4917012345","template":{"name":"a"}}"#, "template", "must be a text"),
            (r#"{"to":"4917012345","template":"a","language":"English!"}"#, "language", "en_US"),
            (r#"{"to":"4917012345","template":"a","params":"x"}"#, "params", "a list or an object"),
            (r#"{"to":"4917012345","template":"a","params":["x",null]}"#, "params[1]", "a text or a number"),
            (r#"{"to":"4917012345","template":"a","params":["x",""]}"#, "params[1]", "is empty"),
            (r#"{"to":"4917012345","template":"a","params":{"n":[]}}"#, "params.n", "a text or a number"),
            (r#"{"to":"4917012345","template":"a","param":["x"]}"#, "param", "is unknown here"),
            (r#"{"to":"4917012345","template":"a","to":"4917012345"}"#, "to", "stands there twice"),
            (r#"{"type":"text","to":"4917012345"}"#, "messaging_product", "is missing"),
            (r#"{"messaging_product":"sms","to":"4917012345"}"#, "messaging_product", "`whatsapp`"),
            (r#"{"messaging_product":"whatsapp","text":{}}"#, "to", "is missing"),
            (r#"{"messaging_product":"whatsapp","to":"call me","text":{}}"#, "to", "no phone number"),
            (r#"{"messaging_product":"whatsapp","to":"4917012345"}"#, "text", "is missing"),
            (r#"{"messaging_product":"whatsapp","to":"4917012345","type":"image"}"#, "image", "is missing"),
            (r#"{"messaging_product":"whatsapp","to":"4917012345","type":1}"#, "type", "must be a text"),
            (
                r#"{"messaging_product":"whatsapp","to":"4917012345","type":"a b"}"#,
                "type",
                "no type of message",
            ),
            (
                r#"{"messaging_product":"whatsapp","recipient_type":"all","to":"4917012345"}"#,
                "recipient_type",
                "`individual` or `group`",
            ),
            (r#"{"messaging_product":"whatsapp","status":"read","message_id":"x"}"#, "status", "no message"),
            (
                r#"{"messaging_product":"whatsapp","to":"4917012345","type":"template","template":"a"}"#,
                "template",
                "must be an object",
            ),
            (
                r#"{"messaging_product":"whatsapp","to":"4917012345","type":"template","template":{"language":{"code":"en"}}}"#,
                "template.name",
                "is missing",
            ),
            (
                r#"{"messaging_product":"whatsapp","to":"4917012345","type":"template","template":{"name":"a"}}"#,
                "template.language",
                "is missing",
            ),
            (
                r#"{"messaging_product":"whatsapp","to":"4917012345","type":"template","template":{"name":"a","language":{}}}"#,
                "template.language.code",
                "is missing",
            ),
            (
                r#"{"to":"4917012345","template":"a","biz_opaque_callback_data":"x"}"#,
                "biz_opaque_callback_data",
                "set by Postbox",
            ),
            (
                r#"{"messaging_product":"whatsapp","to":"4917012345","text":{},"biz\u005fopaque_callback_data":""}"#,
                "biz_opaque_callback_data",
                "set by Postbox",
            ),
        ] {
            let reason = refused(payload);
            let named =
                if field.is_empty() { "the payload ".to_owned() } else { format!("field `{field}` ") };
            assert!(reason.contains(&named) && reason.contains(hint), "{payload}: {reason}");
            assert!(!reason.contains(SECRET), "{payload}: {reason}");
            assert!(reason.len() < 300, "{reason}");
        }
    }

    #[test]
    fn a_strange_name_of_a_field_is_not_repeated() {
        let long = format!(r#"{{"{}":1}}"#, "a".repeat(1000));
        for payload in [r#"{"4917012345":1}"#, r#"{"a b":1}"#, long.as_str()] {
            let reason = refused(payload);
            assert!(reason.contains("is missing") || reason.contains("unknown"), "{reason}");
            assert!(!reason.contains("4917") && reason.len() < 200, "{reason}");
        }
    }
}
