//! Postbox's relay, with its own store and its own webhook sink.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use postbox_core::destination::Destination;
use postbox_core::outcome::{Confirmation, Outcome as Delivery};
use postbox_core::route::Route;
use postbox_core::sink::{Attempt, Sink};
use postbox_postgres::PostgresStore;
use postbox_relay::{Binding, RelayConfig};
use postbox_sinks::webhook::{WebhookConfig, WebhookSink};
use tokio_util::sync::CancellationToken;

use super::drained::{Drained, play_apart};
use super::observed::Observed;
use crate::Outcome;
use crate::arguments::Relay;
use crate::process;
use crate::stage::block_on;

/// Drains in another process, to `target` or to nowhere.
pub(crate) fn drain(database_url: &str, target: Option<&str>, concurrency: u32) -> Outcome<Drained> {
    let concurrency = concurrency.to_string();
    let mut arguments = vec!["relay", "--database-url", database_url, "--concurrency", concurrency.as_str()];
    arguments.extend(target.iter().flat_map(|target| ["--target", target]));
    play_apart(&arguments)
}

/// Drains in this process and says what came of it.
pub(crate) fn play(part: &Relay) -> Outcome<()> {
    let (store, seen) = Observed::new(PostgresStore::connect(&part.database_url, None)?);
    let sink: Arc<dyn Sink> = match &part.target {
        None => Arc::new(Nowhere),
        Some(target) => {
            let config = WebhookConfig { concurrency: part.concurrency, ..WebhookConfig::new(target) };
            Arc::new(WebhookSink::new(config)?)
        }
    };
    let destination =
        Destination { concurrency: part.concurrency, ..Destination::new("receiver", Route::default()) };
    let config = RelayConfig { once: true, ..RelayConfig::default() };
    block_on(async {
        let bindings = vec![Binding { destination, sink }];
        postbox_relay::run(config, Arc::new(store), bindings, CancellationToken::new()).await?;
        Ok(())
    })?;
    let seen = *seen.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = match (seen.first, seen.last) {
        (Some(first), Some(last)) => (last - first).as_secs_f64(),
        _ => return Err("the relay settled nothing".into()),
    };
    Drained {
        events: seen.events,
        seconds,
        settles: seen.settles,
        cpu_seconds: process::own_cpu_seconds(),
        peak_megabytes: process::own_peak_megabytes(),
    }
    .say()
}

/// A destination that confirms everything at once.
struct Nowhere;

#[async_trait]
impl Sink for Nowhere {
    async fn deliver(&self, _attempt: &Attempt) -> Delivery {
        Delivery::Delivered(Confirmation::default())
    }
}
