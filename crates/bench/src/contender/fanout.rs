//! The relay with many destinations, some of which may be in trouble.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use postbox_core::destination::Destination;
use postbox_core::outcome::Outcome as Delivery;
use postbox_core::route::Route;
use postbox_core::sink::{Attempt, Sink};
use postbox_postgres::PostgresStore;
use postbox_relay::{Binding, RelayConfig};
use postbox_sinks::webhook::{WebhookConfig, WebhookSink};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::drained::play_apart;
use crate::Outcome;
use crate::arguments::Fanout;
use crate::stage::block_on;

/// What the destinations that were well came to, all together.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Shared {
    /// Confirmed per second, from the first attempt to the last confirmation.
    pub(crate) rate: f64,
    /// From the event's transaction to its confirmation, in milliseconds.
    pub(crate) median_ms: f64,
    pub(crate) p99_ms: f64,
}

/// Events of destination number `n` have this type.
pub(crate) fn event_type(n: u32) -> String {
    format!("to.{n}")
}

/// Delivers in another process until the destinations that are well have got `part.expect` events.
pub(crate) fn deliver(part: &Fanout) -> Outcome<Shared> {
    let (count, expect) = (part.destinations.to_string(), part.expect.to_string());
    let mut arguments = vec![
        "fanout",
        "--database-url",
        &part.database_url,
        "--target",
        &part.target,
        "--destinations",
        &count,
        "--expect",
        &expect,
    ];
    arguments.extend(part.dead.iter().flat_map(|url| ["--dead", url.as_str()]));
    arguments.extend(part.slow.iter().flat_map(|url| ["--slow", url.as_str()]));
    play_apart(&arguments)
}

/// Does so in this process.
pub(crate) fn play(part: &Fanout) -> Outcome<()> {
    let done = CancellationToken::new();
    let tally =
        Arc::new(Tally { left: AtomicU64::new(part.expect), done: done.clone(), seen: Mutex::default() });
    let mut bindings = Vec::new();
    for n in 0..part.destinations {
        let (url, well) = match (n, &part.dead, &part.slow) {
            (0, Some(dead), _) => (dead, false),
            (1, _, Some(slow)) => (slow, false),
            // The first two are not counted in either run, so that both count the same destinations.
            _ => (&part.target, n > 1),
        };
        let route = Route { events: vec![event_type(n)], ..Route::default() };
        // A destination that takes ten seconds must be given more than that.
        let timeout = Duration::from_secs(12);
        let destination = Destination { timeout, ..Destination::new(format!("d{n}"), route) };
        let inner = WebhookSink::new(WebhookConfig::new(url))?;
        let sink: Arc<dyn Sink> =
            if well { Arc::new(Counted { inner, tally: Arc::clone(&tally) }) } else { Arc::new(inner) };
        bindings.push(Binding { destination, sink });
    }
    let store = Arc::new(PostgresStore::connect(&part.database_url, None)?);
    let config = RelayConfig { drain_timeout: Duration::ZERO, ..RelayConfig::default() };
    block_on(async {
        postbox_relay::run(config, store, bindings, done).await?;
        Ok(())
    })?;
    println!("{}", serde_json::to_string(&tally.shared()?)?);
    Ok(())
}

#[derive(Debug, Default)]
struct Seen {
    first: Option<Instant>,
    last: Option<Instant>,
    waits_ms: Vec<f64>,
}

struct Tally {
    left: AtomicU64,
    done: CancellationToken,
    seen: Mutex<Seen>,
}

impl Tally {
    fn shared(&self) -> Outcome<Shared> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(first), Some(last)) = (seen.first, seen.last) else {
            return Err("nothing was delivered".into());
        };
        seen.waits_ms.sort_by(f64::total_cmp);
        let count = seen.waits_ms.len();
        Ok(Shared {
            rate: count as f64 / (last - first).as_secs_f64(),
            median_ms: seen.waits_ms[count / 2],
            p99_ms: seen.waits_ms[count * 99 / 100],
        })
    }
}

/// A sink whose confirmations are counted.
struct Counted {
    inner: WebhookSink,
    tally: Arc<Tally>,
}

#[async_trait]
impl Sink for Counted {
    async fn deliver(&self, attempt: &Attempt) -> Delivery {
        let began = Instant::now();
        let outcome = self.inner.deliver(attempt).await;
        if matches!(outcome, Delivery::Delivered(_)) {
            let now = std::time::SystemTime::now();
            let written = std::time::SystemTime::from(attempt.event.created_at);
            let wait = now.duration_since(written).unwrap_or_default();
            let mut seen = self.tally.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.first.get_or_insert(began);
            seen.last = Some(Instant::now());
            seen.waits_ms.push(wait.as_secs_f64() * 1e3);
            if self.tally.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.tally.done.cancel();
            }
        }
        outcome
    }
}
