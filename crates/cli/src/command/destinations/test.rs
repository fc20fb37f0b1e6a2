//! `postbox destinations test`: one event, sent directly, past the outbox and every relay.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;
use postbox_core::delivery::DestinationName;
use postbox_core::destination::Destination;
use postbox_core::endpoint::Settings;
use postbox_core::event::{Event, Payload};
use postbox_core::outcome::Outcome;
use postbox_core::sink::{Attempt, Sink};
use serde::Serialize;
use uuid::Uuid;

use super::directory::Directory;
use crate::config::Reach;
use crate::error::CommandError;
use crate::output::{printable, say, say_json};

/// Send one signed event of type postbox.test and print the answer; works for a disabled destination too.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The destination.
    name: String,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What the attempt came to.
#[derive(Debug, Serialize)]
struct Report {
    delivered: bool,
    event_id: Uuid,
    status: Option<u16>,
    took_ms: u128,
    /// The class of the failure.
    class: Option<&'static str>,
    reason: Option<String>,
    /// Beginning of the answer's body, when it failed.
    answer: Option<String>,
}

impl Test {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        let (destination, sink) = self.find(directory).await?;
        let attempt = attempt(destination.timeout);
        let event_id = attempt.event.event_id;
        let began = Instant::now();
        let outcome = destination.treat(sink.deliver(&attempt).await);
        let report = report(event_id, outcome, began.elapsed());
        if self.json {
            say_json(&report)?;
        } else {
            say(tell(&report))?;
        }
        if report.delivered {
            return Ok(());
        }
        Err(CommandError::remains(
            format!("the test event was not delivered to {}", self.name),
            "docs/webhooks.md explains the classes of failure",
        ))
    }

    async fn find(&self, directory: &Directory) -> Result<(Destination, Arc<dyn Sink>), CommandError> {
        let name = &self.name;
        if let Some(found) = directory.in_file(name) {
            if matches!(found.reach, Reach::Whatsapp(_)) {
                return Err(CommandError::usage(
                    format!("{name:?} sends to people, so there is no test event for it"),
                    "nothing was sent; write an event for your own number: docs/whatsapp.md shows one",
                ));
            }
            let sink = found.reach.sink(1).map_err(|problem| cannot_be_used(name, &problem))?;
            return Ok((found.destination(), sink));
        }
        directory.endpoint(name).await?;
        let set = directory.database().store().endpoints(-1).await?.unwrap_or_default();
        let Some(endpoint) = set.endpoints.into_iter().find(|endpoint| *endpoint.name == **name) else {
            return Err(directory.unknown(name).await?);
        };
        let settings = match &endpoint.settings {
            Settings::Usable(settings) => settings,
            Settings::Unusable { reason, .. } => return Err(cannot_be_used(name, reason)),
            Settings::Switch => return Err(directory.unknown(name).await?),
        };
        let sink = directory.webhooks()?.webhook(settings, &endpoint.secrets);
        let sink = sink.map_err(|problem| cannot_be_used(name, &problem))?;
        Ok((settings.destination(DestinationName::from(name.as_str())), Arc::new(sink)))
    }
}

fn cannot_be_used(name: &str, problem: &str) -> CommandError {
    CommandError::remains(format!("{name:?} cannot be used: {problem}"), "nothing was sent")
}

fn attempt(timeout: Duration) -> Attempt {
    let event = Event {
        id: 0,
        event_id: Uuid::now_v7(),
        lane_id: 0,
        shard: 0,
        aggregate_type: "postbox".into(),
        aggregate_id: "test".into(),
        aggregate_seq: 1,
        event_type: "postbox.test".into(),
        payload: Payload::Inline("{\"test\":true}".into()),
        headers: None,
        created_at: Timestamp::now(),
    };
    Attempt { event: Arc::new(event), number: 1, replay: false, maybe_delivered: false, timeout }
}

fn report(event_id: Uuid, outcome: Outcome, took: Duration) -> Report {
    let took_ms = took.as_millis();
    let failed =
        Report { delivered: false, event_id, status: None, took_ms, class: None, reason: None, answer: None };
    match outcome {
        Outcome::Delivered(confirmation) => Report { delivered: true, status: confirmation.status, ..failed },
        Outcome::Failed(failure) => Report {
            status: failure.status,
            class: Some(failure.class.as_str()),
            reason: Some(failure.reason),
            answer: failure.answer,
            ..failed
        },
        Outcome::NotStarted(reason) => Report { reason: Some(reason), ..failed },
    }
}

fn tell(report: &Report) -> String {
    let status = report.status.map(|status| format!("  status {status}")).unwrap_or_default();
    let class = report.class.map(|class| format!(" ({class})")).unwrap_or_default();
    let verdict = if report.delivered { "delivered".to_owned() } else { format!("failed{class}") };
    let mut text = format!("{verdict}{status}  {} ms  event {}", report.took_ms, report.event_id);
    if let Some(reason) = &report.reason {
        text.push_str(&format!("\nreason  {}", printable(reason)));
    }
    if let Some(answer) = &report.answer {
        text.push_str(&format!("\nanswer  {}", printable(answer)));
    }
    text
}
