//! `postbox status`: what is late, failing or dead, in numbers an alert can use.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use postbox_core::operations::{CappedCount, DestinationStatus, Operations, Status as OutboxStatus};
use postbox_core::store::StoreErrorKind;

use crate::cli::Global;
use crate::command::shards::show_left;
use crate::config::{Config, Secrets, parse_duration, show_duration};
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::horizon::{ConsumerDatabase, Horizon};
use crate::moment::show_age;
use crate::output::{say, say_json, table};

/// Show what is late, failing or dead, in all and per destination.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Print JSON; docs/configuration.md names its fields.
    #[arg(long)]
    json: bool,

    /// End with exit code 1 when the oldest unfinished event is older than this: 30s, 5m.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max_lag: Option<Duration>,

    #[command(flatten)]
    consumer: ConsumerDatabase,
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    status: &'a OutboxStatus,
    inbox: &'a Horizon,
}

impl Status {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let config = Config::load(global.config.as_deref(), Secrets::Trust)?;
        let database = Database::open(&Target::choose(global, &config)?)?;
        let mut status = database.operations().status().await?;
        let configured: Vec<&str> =
            config.destinations.iter().map(|found| found.name.value.as_str()).collect();
        add_idle(&mut status, &configured);
        let inbox = Horizon::find(&config, &database, &self.consumer).await?;
        if self.json {
            say_json(&Report { status: &status, inbox: &inbox })?;
        } else {
            let warning = inbox.warning().map_or(String::new(), |warning| format!("\n\n{warning}"));
            let strangers = strangers(&status, &configured, database.operations()).await?;
            say(format!("{}{warning}", render(&status, &strangers)))?;
        }
        self.check_lag(&status)
    }

    fn check_lag(&self, status: &OutboxStatus) -> Result<(), CommandError> {
        match self.max_lag {
            Some(max) if status.lag_seconds > max.as_secs_f64() => Err(CommandError::remains(
                format!("the lag is {}, more than {}", show_age(status.lag_seconds), show_duration(max)),
                match status.oldest_event {
                    Some(event) => format!("`postbox events show {event}` tells why the oldest event waits"),
                    None => "`postbox status` shows which destination is behind".into(),
                },
            )),
            _ => Ok(()),
        }
    }
}

/// Destinations with exceptions that are neither configured nor kept as data. Without a configuration nobody knows.
async fn strangers(
    status: &OutboxStatus,
    configured: &[&str],
    operations: &dyn Operations,
) -> Result<Vec<String>, CommandError> {
    let names = status.destinations.iter().map(|found| found.name.clone());
    let mut strangers: Vec<String> = names.filter(|name| !configured.contains(&name.as_str())).collect();
    if configured.is_empty() || strangers.is_empty() {
        return Ok(Vec::new());
    }
    let endpoints = match operations.list_endpoints().await {
        // Whoever may only look may not look at endpoints, and then cannot tell either.
        Err(error) if error.kind == StoreErrorKind::Denied => return Ok(Vec::new()),
        found => found?,
    };
    for endpoint in endpoints {
        strangers.retain(|name| *name != endpoint.name || endpoint.settings.is_none());
    }
    Ok(strangers)
}

/// Configured destinations without exceptions, so that "all is well" is visible for each.
fn add_idle(status: &mut OutboxStatus, configured: &[&str]) {
    for name in configured {
        if !status.destinations.iter().any(|known| known.name == *name) {
            status.destinations.push(DestinationStatus {
                name: (*name).to_owned(),
                retry: CappedCount::default(),
                waiting: CappedCount::default(),
                held: CappedCount::default(),
                dead: CappedCount::default(),
                oldest_seconds: None,
                last_error: None,
            });
        }
    }
    status.destinations.sort_by(|a, b| a.name.cmp(&b.name));
}

fn render(status: &OutboxStatus, strangers: &[String]) -> String {
    let lag = match status.oldest_event {
        Some(event) => format!("{}  (oldest unfinished event: {event})", show_age(status.lag_seconds)),
        None => show_age(status.lag_seconds),
    };
    let mut text = format!(
        "lag         {lag}\npending     {}\nin flight   {}\nstruggling  {}\ndead        {}\nunrouted    {}",
        status.pending, status.in_flight, status.struggling, status.dead, status.unrouted
    );
    if !status.destinations.is_empty() {
        let rows = status.destinations.iter().map(|found| {
            [
                found.name.clone(),
                found.retry.to_string(),
                found.waiting.to_string(),
                found.held.to_string(),
                found.dead.to_string(),
                found.oldest_seconds.map_or("-".into(), show_age),
                found.last_error.clone().unwrap_or_else(|| "-".into()),
            ]
        });
        let header = ["DESTINATION", "RETRY", "WAITING", "HELD", "DEAD", "OLDEST", "LAST ERROR"];
        text.push_str(&format!("\n\n{}", table(header, rows)));
    }
    if !status.relays.is_empty() {
        let rows = status.relays.iter().map(|relay| {
            [
                relay.label.clone(),
                relay.shards.to_string(),
                relay.epoch.map_or("-".into(), |epoch| epoch.to_string()),
                relay.in_flight.to_string(),
                show_age(status.now.duration_since(relay.started_at).as_secs_f64()),
                show_left(relay.lease_seconds),
            ]
        });
        let header = ["RELAY", "SHARDS", "EPOCH", "IN FLIGHT", "UP", "LEASE LEFT"];
        text.push_str(&format!("\n\n{}", table(header, rows)));
    }
    let blocked = blocked(status);
    if !blocked.is_empty() {
        text.push_str(&format!("\n\n{}", table(["BLOCKED", "WHY", "RELAYS"], blocked)));
    }
    for hint in hints(status, strangers) {
        text.push_str(&format!("\n\n{hint}"));
    }
    text
}

/// Destinations to which relays send nothing at present, with the reason that the first of them tells.
fn blocked(status: &OutboxStatus) -> Vec<[String; 3]> {
    let mut found: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for blocked in status.relays.iter().flat_map(|relay| &relay.blocked.destinations) {
        found.entry(&blocked.destination).or_insert((&blocked.reason, 0)).1 += 1;
    }
    let more = status.relays.iter().map(|relay| relay.blocked.count as usize).max().unwrap_or_default();
    let more = more.saturating_sub(found.len());
    let rows = found.iter().map(|(name, (reason, relays))| {
        [(*name).to_owned(), (*reason).to_owned(), format!("{relays} of {}", status.relays.len())]
    });
    let rest = (more > 0).then(|| [format!("and {more} more"), "-".into(), "-".into()]);
    rows.chain(rest).collect()
}

/// What an operator should know and can do; nothing when all is well.
fn hints(status: &OutboxStatus, strangers: &[String]) -> Vec<String> {
    let mut hints = Vec::new();
    if status.relays.is_empty() && (status.pending.value > 0 || status.struggling.value > 0) {
        hints.push("No relay is running: start `postbox relay`.".into());
    }
    if status.dead.value > 0 || status.destinations.iter().any(|found| found.held.value > 0) {
        hints.push("Dead and held deliveries wait for you: `postbox dead-letters list`.".into());
    }
    if status.unrouted.value > 0 {
        hints.push("Events that no destination wants: `postbox events list --state unrouted`.".into());
    }
    for name in strangers {
        hints.push(format!(
            "{name:?} is neither in the configuration nor among the endpoints: nothing of it is sent any more; \
             `postbox destinations remove {name} --discard` gives up what is kept."
        ));
    }
    hints
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use postbox_core::endpoint::{Blocked, BlockedDestination};
    use postbox_core::operations::RelayStatus;
    use uuid::Uuid;

    use super::*;

    fn quiet() -> OutboxStatus {
        let zero = CappedCount::default();
        OutboxStatus {
            now: Timestamp::from_second(1_770_000_000).unwrap(),
            lag_seconds: 0.0,
            oldest_event: None,
            pending: zero,
            in_flight: 0,
            struggling: zero,
            dead: zero,
            unrouted: zero,
            destinations: Vec::new(),
            relays: Vec::new(),
        }
    }

    #[test]
    fn a_quiet_outbox_is_six_lines() {
        assert_eq!(
            render(&quiet(), &[]),
            "lag         0.0 s\npending     0\nin flight   0\nstruggling  0\ndead        0\nunrouted    0"
        );
    }

    #[test]
    fn a_struggling_outbox_shows_who_and_why_and_what_to_do() {
        let count = |value| CappedCount { value, capped: false };
        let mut status = quiet();
        status.lag_seconds = 754.0;
        status.oldest_event = Some(Uuid::from_u128(7));
        status.pending = CappedCount { value: 100_000, capped: true };
        status.dead = count(2);
        status.destinations.push(DestinationStatus {
            name: "old".into(),
            retry: count(1),
            waiting: count(3),
            held: count(0),
            dead: count(2),
            oldest_seconds: Some(754.0),
            last_error: Some("answered 503".into()),
        });
        status.relays.push(RelayStatus {
            relay: Uuid::from_u128(1),
            label: "web-1:4711".into(),
            shards: 64,
            epoch: Some(3),
            in_flight: 5,
            started_at: Timestamp::from_second(1_770_000_000 - 90).unwrap(),
            lease_seconds: 12.34,
            destinations_version: 4,
            blocked: Blocked::of(vec![BlockedDestination {
                destination: "old".into(),
                reason: "breaker open, next probe in 3 s: answered 503".into(),
            }]),
        });
        let configured = ["billing"];
        add_idle(&mut status, &configured);
        let expected = "\
lag         12 min 34 s  (oldest unfinished event: 00000000-0000-0000-0000-000000000007)
pending     100000+
in flight   0
struggling  0
dead        2
unrouted    0

DESTINATION  RETRY  WAITING  HELD  DEAD  OLDEST       LAST ERROR
billing      0      0        0     0     -            -
old          1      3        0     2     12 min 34 s  answered 503

RELAY       SHARDS  EPOCH  IN FLIGHT  UP          LEASE LEFT
web-1:4711  64      3      5          1 min 30 s  12.3 s

BLOCKED  WHY                                            RELAYS
old      breaker open, next probe in 3 s: answered 503  1 of 1

Dead and held deliveries wait for you: `postbox dead-letters list`.

\"old\" is neither in the configuration nor among the endpoints: nothing of it is sent any more; \
`postbox destinations remove old --discard` gives up what is kept.";
        assert_eq!(render(&status, &["old".to_owned()]), expected);
    }
}
