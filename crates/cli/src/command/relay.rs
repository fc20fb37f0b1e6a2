//! `postbox relay`: delivers until told to stop.

use std::sync::Arc;

use clap::Args;
use postbox_core::endpoint::Settings;
use postbox_core::engine::Limits;
use postbox_core::operations::Operations;
use postbox_core::store::Store;
use postbox_relay::{Binding, Endpoints, RelayConfig, RelayError, Summary};

use crate::cli::Global;
use crate::config::{Config, Secrets};
use crate::database::{Database, Target};
use crate::endpoints::WebhookEndpoints;
use crate::error::CommandError;
use crate::logging::{self, LogFormat};
use crate::output::say;
use crate::shutdown;

/// Deliver events until told to stop.
///
/// SIGTERM or SIGINT ends it after the attempts in flight, a second one at once. Logs go to standard error; RUST_LOG
/// chooses what is logged [default: info].
#[derive(Debug, Args)]
pub(crate) struct Relay {
    /// Stop when nothing is left to do, with exit code 1 when something could not be delivered.
    #[arg(long)]
    once: bool,

    /// How log lines look.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    log_format: LogFormat,
}

impl Relay {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        // Before anything else: a signal that comes while the relay starts is a wish for an orderly end as well.
        let shutdown = shutdown::on_signals()?;
        let config = Config::load(global.config.as_deref(), Secrets::Check)?;
        let target = Target::choose(global, &config)?;
        let bindings = bindings(&config)?;
        let wake_up = target.wake_up(config.relay.wake_up)?;
        let settings = RelayConfig { wake_up, ..self.settings(&config)? };
        let database = Database::open(&target)?;
        require_destinations(&config, &*database.store()).await?;
        logging::start(self.log_format)?;
        let names: Vec<&str> = config.destinations.iter().map(|found| found.name.value.as_str()).collect();
        tracing::info!(database = %target, destinations = names.join(","), once = self.once, "relay starts");
        let relay = Box::pin(postbox_relay::run(settings, database.store(), bindings, shutdown));
        let summary = relay.await?;
        say(tell(&summary))?;
        if self.once { complain_about_the_rest(&summary, database.operations()).await } else { Ok(()) }
    }

    fn settings(&self, config: &Config) -> Result<RelayConfig, CommandError> {
        let relay = &config.relay;
        let endpoints = match config.endpoints.enabled {
            Some(false) => None,
            Some(true) | None => Some(Arc::new(WebhookEndpoints::of(config)?) as Arc<dyn Endpoints>),
        };
        Ok(RelayConfig {
            endpoints,
            label: format!("{}:{}", host_name(), std::process::id()),
            lease_ttl: relay.lease_ttl,
            drain_timeout: relay.drain_timeout,
            once: self.once,
            unrouted: relay.unrouted,
            limits: Limits {
                poll_interval: relay.poll_interval,
                max_in_flight: relay.max_in_flight,
                ..Limits::default()
            },
            ..RelayConfig::default()
        })
    }
}

/// Every destination of the file with its sink.
fn bindings(config: &Config) -> Result<Vec<Binding>, CommandError> {
    let bind = |found: &crate::config::DestinationConfig| {
        let sink = found.reach.sink(found.concurrency).map_err(|problem| {
            CommandError::usage(
                format!("destination {:?} cannot be used: {problem}", found.name.value),
                "nothing was started; docs/configuration.md explains every key",
            )
        })?;
        Ok(Binding { destination: found.destination(), sink })
    };
    config.destinations.iter().map(bind).collect()
}

/// Complains when there is nothing to deliver to, unless the file says that endpoints are to come.
async fn require_destinations(config: &Config, store: &dyn Store) -> Result<(), CommandError> {
    const EXAMPLE: &str = "describe one, for example:\n\n  [[destination]]\n  name = \"billing\"\n  kind = \"webhook\"\n  \
                           url = \"https://billing.example/hooks\"\n  events = [\"order.*\"]\n\n\
                           or add one as data: postbox destinations add; [endpoints] enabled = true starts without any";
    if !config.destinations.is_empty() || config.endpoints.enabled == Some(true) {
        return Ok(());
    }
    if config.endpoints.enabled.is_none() {
        let endpoints = store.endpoints(-1).await?.unwrap_or_default().endpoints;
        if endpoints.iter().any(|endpoint| endpoint.settings != Settings::Switch) {
            return Ok(());
        }
    }
    let message = match &config.file {
        Some(path) => {
            format!("{} has no [[destination]], so there is nothing to deliver to", path.display())
        }
        None => "there is no configuration, so there is nothing to deliver to".into(),
    };
    let start =
        if config.file.is_some() { "" } else { "`postbox init` writes a commented postbox.toml; in it, " };
    Err(CommandError::usage(message, format!("{start}{EXAMPLE}")))
}

impl From<RelayError> for CommandError {
    fn from(error: RelayError) -> Self {
        match error {
            RelayError::Store(error) => error.into(),
            wrong @ (RelayError::LeaseTooShort { .. } | RelayError::DuplicateDestination(_)) => {
                Self::usage(wrong.to_string(), "nothing was started")
            }
        }
    }
}

fn tell(summary: &Summary) -> String {
    let counted = &summary.counters;
    let mut text = format!(
        "{} delivered, {} failed attempts to be repeated, {} dead letters",
        counted.delivered, counted.retried, counted.dead
    );
    for (count, what) in [
        (counted.held, "lanes held"),
        (counted.expired, "expired"),
        (counted.unrouted, "unrouted"),
        (counted.skipped, "without a destination skipped"),
        (counted.discarded, "discarded with their destination"),
        (u64::try_from(summary.abandoned).unwrap_or(u64::MAX), "abandoned in flight, to be sent again"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

/// A single run (cron, CI) has to say when something it tried did not arrive.
async fn complain_about_the_rest(summary: &Summary, operations: &dyn Operations) -> Result<(), CommandError> {
    let counted = &summary.counters;
    let given_up = counted.dead + counted.held;
    if let Some((name, reason)) = summary.blocked.first() {
        let others = match summary.blocked.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return Err(CommandError::remains(
            format!("nothing was sent to {name}{others} at the end ({reason})"),
            "what waits for it is kept for the next run; `postbox status` shows it",
        ));
    }
    if given_up == 0 && counted.retried == 0 && summary.abandoned == 0 {
        return Ok(());
    }
    let struggling = operations.status().await?.struggling;
    if given_up == 0 && struggling.value == 0 && summary.abandoned == 0 {
        return Ok(());
    }
    Err(CommandError::remains(
        format!(
            "not everything was delivered: {struggling} to be tried again, {given_up} given up or held in this run"
        ),
        "`postbox status` shows which destination fails and why",
    ))
}

fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = kernel.or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".into())
}
