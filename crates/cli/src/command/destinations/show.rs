//! `postbox destinations show`.

use clap::Args;
use postbox_core::endpoint::{EndpointRecord, EndpointSettings, SecretRecord, Settings};
use serde_json::{Value, json};

use super::directory::Directory;
use super::list::{Listed, everything, shown_url};
use crate::error::CommandError;
use crate::moment::show_moment;
use crate::output::{printable, say, say_json};

/// Show everything of a destination but its secrets and the values of its request headers.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The destination.
    name: String,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        let Some(listed) = everything(directory).await?.into_iter().find(|found| found.name == self.name)
        else {
            return Err(directory.unknown(&self.name).await?);
        };
        let record = directory.operations().find_endpoint(&self.name).await?;
        let settings = record.as_ref().and_then(shown);
        if self.json {
            let secrets: &[SecretRecord] = record.as_ref().map_or(&[], |record| &record.secrets);
            let times = record.as_ref().map(|record| (record.created_at, record.updated_at));
            let mut value = serde_json::to_value(&listed).map_err(std::io::Error::from)?;
            value["settings"] = settings.unwrap_or_default();
            value["secrets"] = json!(secrets);
            value["created_at"] = json!(times.map(|(created, _)| created));
            value["updated_at"] = json!(times.map(|(_, updated)| updated));
            return say_json(&value);
        }
        say(tell(&listed, record.as_ref(), settings))
    }
}

/// Usable settings without what may be a secret.
fn shown(record: &EndpointRecord) -> Option<Value> {
    match Settings::read(record.settings.as_deref()) {
        Settings::Usable(settings) => Some(shown_settings(&settings)),
        Settings::Unusable { .. } | Settings::Switch => None,
    }
}

/// `settings` without what may be a secret: of the request's headers only the names.
pub(super) fn shown_settings(settings: &EndpointSettings) -> Value {
    let mut shown = settings.to_json();
    shown["url"] = json!(shown_url(&settings.url));
    if !settings.request_headers.is_empty() {
        shown["request_headers"] = json!(settings.request_headers.keys().collect::<Vec<_>>());
    }
    shown
}

fn tell(listed: &Listed, record: Option<&EndpointRecord>, settings: Option<Value>) -> String {
    let mut lines: Vec<(String, String)> = vec![("name".into(), listed.name.clone())];
    let mut line = |key: &str, value: String| lines.push((key.to_owned(), value));
    line("kept in", if listed.source == "file" { "the configuration file" } else { "the table" }.into());
    let since = listed.disabled_at.map(|at| format!(" since {}", show_moment(at))).unwrap_or_default();
    let why = listed.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    line("state", format!("{}{since}{why}", listed.state));
    line("struggling", listed.struggling.to_string());
    line("dead", listed.dead.to_string());
    match settings {
        Some(Value::Object(settings)) => {
            for key in postbox_core::endpoint::KEYS {
                match settings.get(key) {
                    Some(Value::String(text)) => line(key, text.clone()),
                    Some(value) => line(key, value.to_string()),
                    None => {}
                }
            }
        }
        _ => {
            if let Some(url) = &listed.url {
                line("url", url.clone());
            }
        }
    }
    if let Some(record) = record.filter(|_| listed.source == "table") {
        for secret in &record.secrets {
            let ends = match secret.expires_at {
                Some(at) => format!(", until {}", show_moment(at)),
                None => String::new(),
            };
            line("secret", format!("of {}{ends}", show_moment(secret.created_at)));
        }
        if record.secrets.is_empty() {
            line("secret", "none: requests are not signed".into());
        }
        line("added", show_moment(record.created_at));
        line("changed", show_moment(record.updated_at));
    }
    let width = lines.iter().map(|(key, _)| key.len()).max().unwrap_or_default();
    let lines: Vec<String> =
        lines.iter().map(|(key, value)| format!("{key:width$}  {}", printable(value))).collect();
    lines.join("\n")
}
