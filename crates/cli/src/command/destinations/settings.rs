//! The settings of an endpoint on a command line.

use std::io::Read as _;

use clap::Args;
use postbox_core::endpoint::{EndpointSettings, KEYS};
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};

use crate::config::nearest;
use crate::error::CommandError;
use crate::kept_secret::read_at;

/// Largest accepted document of settings, as in the database.
const MAX_BYTES: u64 = 32 * 1024;

/// How to send to an endpoint. Every key is explained in docs/endpoints.md.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct SettingsArgs {
    /// Where requests go (POST).
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Event types that go there, * for any run of characters; may be repeated [default: all].
    #[arg(long = "event", value_name = "GLOB")]
    events: Vec<String>,

    /// Types of aggregate that go there; may be repeated [default: all].
    #[arg(long = "aggregate-type", value_name = "TYPE")]
    aggregate_types: Vec<String>,

    /// Header of the event that must be equal; may be repeated.
    #[arg(long = "match-header", value_name = "NAME=VALUE", value_parser = pair)]
    match_headers: Vec<(String, String)>,

    /// Only events of this tenant (their header `tenant`).
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,

    /// Header of every request; may be repeated.
    #[arg(long = "request-header", value_name = "NAME=VALUE", value_parser = pair)]
    request_headers: Vec<(String, String)>,

    /// Header of every request whose value is kept elsewhere: Authorization=env:NAME or =file:PATH; may be repeated.
    #[arg(long = "secret-header", value_name = "NAME=PLACE", value_parser = pair)]
    secret_headers: Vec<(String, String)>,

    /// How the body is written: json, cloudevents-binary, cloudevents-structured or raw [default: json].
    #[arg(long, value_name = "ENVELOPE")]
    envelope: Option<String>,

    /// Where CloudEvents come from: a URI or a path.
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,

    /// `lane`: events of one aggregate in their order; `none`: each by itself [default: lane].
    #[arg(long, value_name = "ORDERING")]
    ordering: Option<String>,

    /// Attempts in flight at once from each relay [default: 64].
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,

    /// Attempts per time, all relays together: 100/1s.
    #[arg(long, value_name = "COUNT/TIME", value_parser = rate)]
    rate_limit: Option<(u32, String)>,

    /// Attempts of the rate limit that may start at once after a quiet time [default: 1].
    #[arg(long, value_name = "N", requires = "rate_limit")]
    burst: Option<u32>,

    /// What an answer means here: 404=rejected, 409=delivered; may be repeated.
    #[arg(long = "class", value_name = "STATUS=CLASS", value_parser = pair)]
    classes: Vec<(String, String)>,

    /// Longest time of one attempt [default: 10s].
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,

    /// Attempts before giving up [default: 8].
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,

    /// Wait after each failed attempt, the last one repeats: 5s,30s,2m.
    #[arg(long, value_name = "DURATIONS", value_delimiter = ',')]
    delays: Vec<String>,

    /// Share of each wait that is left to chance [default: 0.2].
    #[arg(long, value_name = "SHARE")]
    jitter: Option<f64>,

    /// When attempts have run out: dead_letter or hold_lane [default: dead_letter].
    #[arg(long, value_name = "WHAT")]
    on_exhausted: Option<String>,

    /// For people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// All settings as a JSON object in this file, - for standard input; other options change single keys of it.
    #[arg(long, value_name = "FILE")]
    settings: Option<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write a name, =, and a value".to_owned()),
    }
}

fn rate(text: &str) -> Result<(u32, String), String> {
    let parts = text.split_once('/').and_then(|(count, per)| Some((count.parse().ok()?, per.to_owned())));
    parts.ok_or_else(|| "write a number, /, and a time: 100/1s".to_owned())
}

impl SettingsArgs {
    /// Whether nothing was given.
    pub(super) fn is_empty(&self) -> bool {
        let mut nothing = Map::new();
        self.put_into(&mut nothing);
        nothing.is_empty() && self.settings.is_none() && self.secret_headers.is_empty()
    }

    /// Changes `object` as the command line says.
    ///
    /// # Errors
    /// When the file of settings cannot be read as a JSON object, or a secret is not where it should be.
    pub(super) fn apply(&self, object: &mut Map<String, Value>) -> Result<(), CommandError> {
        if let Some(file) = &self.settings {
            *object = read_object(file)?;
        }
        self.put_into(object);
        for (name, place) in &self.secret_headers {
            let value = read_at("--secret-header", place)?;
            let headers = object.entry("request_headers").or_insert_with(|| json!({}));
            if let Value::Object(headers) = headers {
                headers.insert(name.clone(), json!(value.expose_secret()));
            }
        }
        Ok(())
    }

    fn put_into(&self, object: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(key.to_owned(), value);
            }
        };
        put("url", self.url.as_ref().map(|url| json!(url)));
        put("events", list(&self.events));
        put("aggregate_types", list(&self.aggregate_types));
        put("match_headers", entries(&self.match_headers));
        put("tenant", self.tenant.as_ref().map(|tenant| json!(tenant)));
        put("request_headers", entries(&self.request_headers));
        put("envelope", self.envelope.as_ref().map(|word| json!(word)));
        put("source", self.source.as_ref().map(|text| json!(text)));
        put("ordering", self.ordering.as_ref().map(|word| json!(word)));
        put("concurrency", self.concurrency.map(|number| json!(number)));
        put(
            "rate_limit",
            self.rate_limit
                .as_ref()
                .map(|(count, per)| json!({ "count": count, "per": per, "burst": self.burst.unwrap_or(1) })),
        );
        put("classes", entries(&self.classes));
        put("timeout", self.timeout.as_ref().map(|time| json!(time)));
        put("on_exhausted", self.on_exhausted.as_ref().map(|word| json!(word)));
        put("description", self.description.as_ref().map(|text| json!(text)));
        let retry = [
            ("attempts", self.attempts.map(|number| json!(number))),
            ("delays", list(&self.delays)),
            ("jitter", self.jitter.map(|share| json!(share))),
        ];
        for (key, value) in retry.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            let schedule = object.entry("retry").or_insert_with(|| json!({}));
            if let Value::Object(schedule) = schedule {
                schedule.insert(key.to_owned(), value);
            }
        }
    }
}

fn list(texts: &[String]) -> Option<Value> {
    (!texts.is_empty()).then(|| json!(texts))
}

fn entries(pairs: &[(String, String)]) -> Option<Value> {
    let object: Map<String, Value> = pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    (!object.is_empty()).then_some(Value::Object(object))
}

fn read_object(file: &str) -> Result<Map<String, Value>, CommandError> {
    let wrong = |problem: String| {
        CommandError::usage(
            format!("the settings cannot be read: {problem}"),
            "give a JSON object such as {\"url\": \"https://acme.example/hooks\", \"events\": [\"order.*\"]}",
        )
    };
    let mut text = String::new();
    let read = if file == "-" {
        std::io::stdin().take(MAX_BYTES + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
    };
    read.map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(wrong("they have more than 32 KiB".to_owned()));
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(wrong("they are no JSON object".to_owned())),
        Err(error) => Err(wrong(format!("line {} column {} is no JSON", error.line(), error.column()))),
    }
}

/// Reads settings as somebody wrote them.
///
/// # Errors
/// Every mistake in them.
pub(super) fn checked(object: Map<String, Value>) -> Result<EndpointSettings, CommandError> {
    let unknown = object.keys().find(|key| !KEYS.contains(&key.as_str())).cloned();
    EndpointSettings::read(object).map_err(|(problems, _)| {
        let meant = unknown.and_then(|key| nearest(&key, &KEYS));
        let help = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "docs/endpoints.md explains every key".to_owned(),
        };
        CommandError::usage(format!("these settings cannot be used: {}", problems.join("; ")), help)
    })
}

/// The complaint about settings for which no sink can be made.
pub(super) fn unusable(problem: &str) -> CommandError {
    CommandError::usage(
        format!("this endpoint cannot be used: {problem}"),
        "[endpoints] in postbox.toml decides which addresses are allowed; docs/endpoints.md explains every key",
    )
}
