//! The checks that Meta makes before it takes a message.

use postbox_core::callback::CallbackMark;
use serde_json::Value;

use crate::api::Settings;
use crate::http::Request;
use crate::refusal::Refusal;

/// Longest `biz_opaque_callback_data`, in characters.
const MAX_CALLBACK_DATA: usize = 512;

/// What is known of a request that passed.
pub(crate) struct Checked {
    pub(crate) to: String,
    pub(crate) mark: Option<CallbackMark>,
    pub(crate) body: Value,
}

/// Checks path, token and body, in this order.
pub(crate) fn check(request: &Request, settings: &Settings) -> Result<Checked, Refusal> {
    check_target(request, settings)?;
    check_token(request, settings)?;
    let body: Value = serde_json::from_slice(&request.body)
        .map_err(|_| Refusal::of(100).because("The request's body is no JSON"))?;
    if text(&body, "messaging_product") != Some("whatsapp") {
        return Err(required("messaging_product"));
    }
    let to = recipient(&body)?;
    check_content(&body, settings)?;
    let data = text(&body, "biz_opaque_callback_data");
    if data.is_some_and(|data| data.chars().count() > MAX_CALLBACK_DATA) {
        return Err(Refusal::of(100).because("biz_opaque_callback_data is longer than 512 characters"));
    }
    let mark = data.and_then(CallbackMark::parse);
    Ok(Checked { to, mark, body })
}

fn check_target(request: &Request, settings: &Settings) -> Result<(), Refusal> {
    let parts: Vec<&str> = request.target.trim_start_matches('/').split('/').collect();
    let [version, id, "messages"] = parts.as_slice() else {
        let message = format!("Unknown path components: {}", request.target);
        return Err(Refusal { code: 2_500, message, ..Refusal::of(100) });
    };
    if !version.starts_with('v') || *id != settings.phone_number_id || request.method != "POST" {
        return Err(Refusal {
            subcode: Some(33),
            kind: "GraphMethodException",
            message: format!(
                "Unsupported {} request. Object with ID '{id}' does not exist, cannot be loaded due to missing permissions, \
                 or does not support this operation",
                request.method.to_ascii_lowercase()
            ),
            ..Refusal::of(100)
        });
    }
    Ok(())
}

fn check_token(request: &Request, settings: &Settings) -> Result<(), Refusal> {
    match request.header("authorization").and_then(|value| value.strip_prefix("Bearer ")) {
        Some(token) if token == settings.token => Ok(()),
        Some(_) => {
            let message = "Invalid OAuth access token - Cannot parse access token".to_owned();
            Err(Refusal { message, ..Refusal::of(190) })
        }
        None => {
            let message = "An access token is required to request this resource.".to_owned();
            Err(Refusal { code: 104, status: 401, message, ..Refusal::of(190) })
        }
    }
}

fn recipient(body: &Value) -> Result<String, Refusal> {
    let Some(to) = text(body, "to").or(text(body, "recipient")) else { return Err(required("to")) };
    let is_number = text(body, "to").is_some() && text(body, "recipient_type") != Some("group");
    if !is_number {
        return Ok(to.to_owned());
    }
    let digits: String = to.chars().filter(char::is_ascii_digit).collect();
    let fine = to.chars().all(|c| c.is_ascii_digit() || "+-() ".contains(c));
    if !fine || digits.len() < 5 {
        return Err(Refusal::of(131_009).because("Parameter value is not valid: to"));
    }
    Ok(digits)
}

fn check_content(body: &Value, settings: &Settings) -> Result<(), Refusal> {
    let kind = text(body, "type").unwrap_or("text");
    let Some(content) = body.get(kind) else {
        return Err(Refusal::of(131_008).because(format!("{kind} is required")));
    };
    if kind != "template" {
        return Ok(());
    }
    let Some(name) = text(content, "name") else { return Err(required("template['name']")) };
    if content.get("language").and_then(|language| text(language, "code")).is_none() {
        return Err(required("template['language']['code']"));
    }
    let Some(templates) = &settings.templates else { return Ok(()) };
    let Some((_, wanted)) = templates.iter().find(|(known, _)| known == name) else {
        return Err(Refusal::of(132_001).because(format!("template name ({name}) does not exist")));
    };
    let given = parameters(content);
    if given != *wanted {
        let details = format!("body: number of localizable_params ({given}) does not match ({wanted})");
        return Err(Refusal::of(132_000).because(details));
    }
    Ok(())
}

/// How many parameters a template's body is given.
fn parameters(template: &Value) -> usize {
    let components = template.get("components").and_then(Value::as_array).into_iter().flatten();
    let body = components.filter(|component| text(component, "type") == Some("body"));
    body.filter_map(|component| component.get("parameters")?.as_array()).map(Vec::len).sum()
}

fn required(parameter: &str) -> Refusal {
    Refusal { message: format!("(#100) The parameter {parameter} is required."), ..Refusal::of(100) }
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}
