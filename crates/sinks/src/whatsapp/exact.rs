//! A request of the Cloud API that the producer wrote: checked as far as it can be said here that Meta would refuse it.

use super::fields::Fields;
use super::message::Refusal;
use super::recipient::check_phone;
use super::short::{check_language, check_template};

/// Types have plain names: `text`, `template`, `interactive`, …
const MAX_TYPE_CHARS: usize = 40;

/// Checks everything on which a message depends whatever it says.
pub(super) fn check(fields: &Fields<'_>) -> Result<(), Refusal> {
    if fields.required_text("messaging_product")? != "whatsapp" {
        return Err(fields.refusal("messaging_product", "must be `whatsapp`"));
    }
    if fields.has("status") {
        let problem = "belongs to a read receipt or a typing indicator, which is no message";
        return Err(fields.refusal("status", problem));
    }
    check_recipient(fields)?;
    let kind = fields.text("type")?.unwrap_or_else(|| "text".to_owned());
    if kind.len() > MAX_TYPE_CHARS || !kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
        return Err(fields.refusal("type", "is no type of message"));
    }
    let content = fields.required(&kind)?;
    if kind == "template" { check_content(&Fields::read("template", content.get())?) } else { Ok(()) }
}

/// A person by phone number (`to`) or by an id of theirs (`recipient`), or a group by its id.
fn check_recipient(fields: &Fields<'_>) -> Result<(), Refusal> {
    let group = match fields.text("recipient_type")?.as_deref() {
        None | Some("individual") => false,
        Some("group") => true,
        Some(_) => return Err(fields.refusal("recipient_type", "must be `individual` or `group`")),
    };
    match fields.text("to")? {
        Some(_) if group => Ok(()),
        Some(number) => check_phone(&number).map(|_| ()).map_err(|problem| fields.refusal("to", problem)),
        None if fields.text("recipient")?.is_some() => Ok(()),
        None => Err(fields.refusal("to", "is missing")),
    }
}

fn check_content(template: &Fields<'_>) -> Result<(), Refusal> {
    let name = template.required_text("name")?;
    check_template(&name).map_err(|problem| template.refusal("name", problem))?;
    let language = Fields::read("template.language", template.required("language")?.get())?;
    let code = language.required_text("code")?;
    check_language(&code).map_err(|problem| language.refusal("code", problem))
}
