//! Postbox's relay, with its own store and its own webhook sink.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use postbox_core::destination::{DEFAULT_TIMEOUT, Destination};
use postbox_core::outcome::{Confirmation, Outcome as Delivery};
use postbox_core::route::Route;
use postbox_core::sink::{Attempt, Sink};
use postbox_postgres::PostgresStore;
use postbox_relay::{Binding, RelayConfig};
use postbox_sinks::webhook::{WebhookConfig, WebhookSink};
use tokio_util::sync::CancellationToken;

use super::drained::{Busy, Drained, play_apart};
use super::observed::Observed;
use crate::Outcome;
use crate::arguments::Relay;
use crate::process;
use crate::stage::block_on;

/// Name of the destination that it delivers to.
pub(crate) const DESTINATION: &str = "receiver";

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
    let lease_ttl = Duration::from_millis(part.lease_ms);
    let destination = Destination {
        concurrency: part.concurrency,
        timeout: DEFAULT_TIMEOUT.min(lease_ttl / 2),
        ..Destination::new(DESTINATION, Route::default())
    };
    let config = RelayConfig { once: !part.standing, lease_ttl, ..RelayConfig::default() };
    let shutdown = CancellationToken::new();
    if part.standing {
        let shutdown = shutdown.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            shutdown.cancel();
        });
    }
    block_on(async {
        let bindings = vec![Binding { destination, sink }];
        postbox_relay::run(config, Arc::new(store), bindings, shutdown).await?;
        Ok(())
    })?;
    let seen = *seen.lock().unwrap_or_else(PoisonError::into_inner);
    Drained {
        events: seen.events,
        busy: seen.first.zip(seen.last).map(|(first, last)| Busy::between(first, last)),
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
