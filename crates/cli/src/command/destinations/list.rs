//! `postbox destinations list`.

use std::collections::HashMap;

use clap::Args;
use jiff::Timestamp;
use postbox_core::endpoint::{EndpointRecord, Settings};
use postbox_core::operations::{CappedCount, DestinationStatus, Status};
use postbox_core::route::Route;
use serde::Serialize;

use super::directory::Directory;
use crate::error::CommandError;
use crate::output::{say, say_json, table};

/// List destinations: where each leads, what goes there, and whether anything is sent.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON; docs/configuration.md names its fields.
    #[arg(long)]
    json: bool,
}

/// One destination as listings show it.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    pub(super) name: String,
    /// `file` or `table`.
    pub(super) source: &'static str,
    /// Without a query, which may hold a token.
    pub(super) url: Option<String>,
    pub(super) events: Vec<String>,
    pub(super) aggregate_types: Vec<String>,
    pub(super) tenant: Option<String>,
    /// `enabled`, `disabled` or `unusable`.
    pub(super) state: &'static str,
    /// Why nothing is sent, or what is wrong with it.
    pub(super) reason: Option<String>,
    pub(super) disabled_at: Option<Timestamp>,
    pub(super) struggling: u64,
    pub(super) dead: u64,
}

impl List {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        let listed = everything(directory).await?;
        if self.json {
            return say_json(&serde_json::json!({ "destinations": listed }));
        }
        if listed.is_empty() {
            return say("no destinations");
        }
        let rows = listed.into_iter().map(|found| {
            [
                found.name,
                found.source.to_owned(),
                found.url.unwrap_or_else(|| "-".into()),
                if found.events.is_empty() { "*".into() } else { found.events.join(" ") },
                found.tenant.unwrap_or_else(|| "-".into()),
                found.state.to_owned(),
                found.struggling.to_string(),
                found.dead.to_string(),
                found.reason.unwrap_or_else(|| "-".into()),
            ]
        });
        let header = ["NAME", "IN", "URL", "EVENTS", "TENANT", "STATE", "STRUGGLING", "DEAD", "REASON"];
        say(table(header, rows))
    }
}

/// Those of the file, then those of the table.
pub(super) async fn everything(directory: &Directory) -> Result<Vec<Listed>, CommandError> {
    let operations = directory.operations();
    let status = operations.status().await?;
    let records = operations.list_endpoints().await?;
    let known = Known::of(&status, &records);
    let in_file = directory.configured().iter().map(|found| {
        let name = &found.name.value;
        known.listed(name, "file", Some(&found.reach.url()), &found.route)
    });
    let in_table = records.iter().filter(|record| directory.in_file(&record.name).is_none());
    let in_table = in_table.map(|record| known.endpoint(record));
    Ok(in_file.chain(in_table).collect())
}

/// What the table and the relays say of destinations.
struct Known<'a> {
    counts: HashMap<&'a str, &'a DestinationStatus>,
    /// What relays send nothing to, and why.
    blocked: HashMap<&'a str, &'a str>,
    rows: HashMap<&'a str, &'a EndpointRecord>,
}

impl<'a> Known<'a> {
    fn of(status: &'a Status, records: &'a [EndpointRecord]) -> Self {
        let told = status.relays.iter().flat_map(|relay| &relay.blocked.destinations);
        Self {
            counts: status.destinations.iter().map(|found| (found.name.as_str(), found)).collect(),
            blocked: told.map(|found| (found.destination.as_str(), found.reason.as_str())).collect(),
            rows: records.iter().map(|record| (record.name.as_str(), record)).collect(),
        }
    }

    fn endpoint(&self, record: &EndpointRecord) -> Listed {
        match Settings::read(record.settings.as_deref()) {
            Settings::Usable(settings) => {
                self.listed(&record.name, "table", Some(&settings.url), &settings.route)
            }
            Settings::Unusable { reason, route } => Listed {
                state: "unusable",
                reason: Some(reason),
                ..self.listed(&record.name, "table", None, &route.unwrap_or_default())
            },
            Settings::Switch => Listed {
                reason: Some("no configuration file that was read describes it".into()),
                ..self.listed(&record.name, "table", None, &Route::default())
            },
        }
    }

    fn listed(&self, name: &str, source: &'static str, url: Option<&str>, route: &Route) -> Listed {
        let disabled = self.rows.get(name).and_then(|row| row.disabled_at.map(|at| (at, row)));
        let counts = self.counts.get(name);
        let count = |of: fn(&DestinationStatus) -> CappedCount| counts.map_or(0, |found| of(found).value);
        Listed {
            name: name.to_owned(),
            source,
            url: url.map(shown_url),
            events: route.events.clone(),
            aggregate_types: route.aggregate_types.clone(),
            tenant: route.tenant.clone(),
            state: if disabled.is_some() { "disabled" } else { "enabled" },
            reason: match disabled {
                Some((_, row)) => row.disabled_reason.clone(),
                None => self.blocked.get(name).map(|&reason| reason.to_owned()),
            },
            disabled_at: disabled.map(|(at, _)| at),
            struggling: count(|found| found.retry) + count(|found| found.waiting) + count(|found| found.held),
            dead: count(|found| found.dead),
        }
    }
}

/// A URL without what may be a secret in it: user, password, query.
pub(super) fn shown_url(url: &str) -> String {
    let (plain, query) = match url.split_once(['?', '#']) {
        Some((plain, _)) => (plain, "?…"),
        None => (url, ""),
    };
    let Some((scheme, rest)) = plain.split_once("://") else { return format!("{plain}{query}") };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_holds_no_password_and_no_query() {
        for (url, shown) in [
            ("https://acme.example/hooks", "https://acme.example/hooks"),
            ("https://acme.example/hooks?token=hunter2", "https://acme.example/hooks?…"),
            ("https://me:hunter2@acme.example:8443/a", "https://acme.example:8443/a"),
            ("https://me:hun@hunter2@acme.example", "https://acme.example"),
            ("hunter", "hunter"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
