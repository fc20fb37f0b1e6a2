//! The short form: a template message in one line of JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::message::Refusal;
use super::recipient::check_phone;

/// The fields of the short form.
const FIELDS: [&str; 4] = ["to", "template", "params", "language"];

/// Longest name of a template (Meta: Message templates).
const MAX_TEMPLATE_CHARS: usize = 512;

/// Longest accepted code of a language; Meta's longest have 6.
const MAX_LANGUAGE_CHARS: usize = 16;

#[derive(Serialize)]
struct Message<'a> {
    messaging_product: &'a str,
    recipient_type: &'a str,
    to: &'a str,
    r#type: &'a str,
    template: Template<'a>,
}

#[derive(Serialize)]
struct Template<'a> {
    name: &'a str,
    language: Language<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    components: Vec<Component>,
}

#[derive(Serialize)]
struct Language<'a> {
    code: &'a str,
}

#[derive(Serialize)]
struct Component {
    r#type: &'static str,
    parameters: Vec<Parameter>,
}

#[derive(Serialize)]
struct Parameter {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter_name: Option<String>,
    text: String,
}

/// The request of the Cloud API that `fields` stand for; `language` holds where they name none.
pub(super) fn expand(fields: &Fields<'_>, language: &str) -> Result<String, Refusal> {
    let to = fields.required_text("to")?;
    let to = check_phone(&to).map_err(|problem| fields.refusal("to", problem))?;
    let name = fields.required_text("template")?;
    check_template(&name).map_err(|problem| fields.refusal("template", problem))?;
    let own = fields.text("language")?;
    let code = own.as_deref().unwrap_or(language);
    check_language(code).map_err(|problem| fields.refusal("language", problem))?;
    let parameters = fields.get("params").map(parameters).transpose()?.unwrap_or_default();
    if let Some((unknown, _)) = fields.iter().find(|(name, _)| !FIELDS.contains(name)) {
        let problem = format!(
            "is unknown here: the short form has {}; a request of the Cloud API begins with `messaging_product`",
            FIELDS.join(", ")
        );
        return Err(fields.refusal(unknown, problem));
    }
    let components =
        if parameters.is_empty() { Vec::new() } else { vec![Component { r#type: "body", parameters }] };
    let message = Message {
        messaging_product: "whatsapp",
        recipient_type: "individual",
        to: &to,
        r#type: "template",
        template: Template { name: &name, language: Language { code }, components },
    };
    serde_json::to_string(&message).map_err(|_| Refusal::new("", "cannot be written as JSON"))
}

/// Numbered parameters as a list, named ones as an object.
fn parameters(value: &RawValue) -> Result<Vec<Parameter>, Refusal> {
    if value.get().starts_with('{') {
        let named = Fields::read("params", value.get())?;
        let all = named.iter().map(|(name, value)| {
            let text = text_of(value).map_err(|problem| named.refusal(name, problem))?;
            Ok(Parameter { r#type: "text", parameter_name: Some(name.to_owned()), text })
        });
        return all.collect();
    }
    let listed: Vec<&RawValue> = serde_json::from_str(value.get())
        .map_err(|_| Refusal::new("params", "must be a list or an object of texts"))?;
    let all = listed.into_iter().enumerate().map(|(at, value)| {
        let field = || format!("params[{at}]");
        let text = text_of(value).map_err(|problem| Refusal::new(field(), problem))?;
        Ok(Parameter { r#type: "text", parameter_name: None, text })
    });
    all.collect()
}

/// A text, or a number as it is written.
fn text_of(value: &RawValue) -> Result<String, &'static str> {
    let raw = value.get();
    if raw.starts_with('"') {
        let text: String = serde_json::from_str(raw).map_err(|_| "must be a text of valid Unicode")?;
        return if text.is_empty() { Err("is empty, which the Cloud API refuses") } else { Ok(text) };
    }
    if raw.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return Ok(raw.to_owned());
    }
    Err("must be a text or a number")
}

/// Checks the name of a template.
pub(super) fn check_template(name: &str) -> Result<(), &'static str> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.len() <= MAX_TEMPLATE_CHARS && name.bytes().all(fine) {
        return Ok(());
    }
    Err("is no name of a template: those have up to 512 lower-case letters, digits and _")
}

/// Checks the code of a language.
pub(super) fn check_language(code: &str) -> Result<(), &'static str> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if (2..=MAX_LANGUAGE_CHARS).contains(&code.len()) && code.bytes().all(fine) {
        return Ok(());
    }
    Err("is no code of a language: write it as the template has it, for example en_US")
}
