//! The tasks that talk to the database for the relay: one for reads, one for settles, one for the lease.
//!
//! Each takes one order at a time and answers with a [`Happening`]. None of them is ever dropped in the middle of a
//! call: a database call that is broken off half-way leaves its connection out of step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postbox_core::delivery::{DestinationName, ParkedLane};
use postbox_core::endpoint::EndpointSet;
use postbox_core::engine::{AttemptId, Read};
use postbox_core::event::{OutboxId, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term};
use postbox_core::outcome::Outcome;
use postbox_core::store::{
    Arrival, DueRequest, RefillRequest, Scan, SettleBatch, SettleReport, Store, StoreError,
};
use postbox_core::wake_up::{Heard, WakeUp};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// Pause before a settle is repeated; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Longest pause between two tries while the database does not answer.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Pause before a wake-up that failed is tried again; it doubles up to [`LONGEST_DEAF_PAUSE`].
const FIRST_DEAF_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause between two tries of a wake-up: polling serves meanwhile.
const LONGEST_DEAF_PAUSE: Duration = Duration::from_secs(30);

/// Everything that can happen to a relay, in the one queue that its main task works off.
#[derive(Debug)]
pub(crate) enum Happening {
    Ended(AttemptId, Outcome, Duration),
    Scanned(Scan),
    Loaded(Scan, Vec<Arrival>),
    Refilled(RefillRequest, Vec<Arrival>),
    Due(DueRequest, Vec<ParkedLane>),
    ReadFailed(StoreError),
    Settled(SettleReport),
    SettleFailed(StoreError),
    /// Of a heartbeat, with the time before it was sent.
    Lease(Result<LeaseAnswer, StoreError>, Instant),
    HandedBack(Result<(), StoreError>),
    /// Of a look at the destinations kept as data; `None` when nothing has changed.
    Looked(Result<Option<EndpointSet>, StoreError>),
    /// Of an order to disable a destination that is gone.
    Disabled(DestinationName, Result<(), StoreError>),
    Left,
    /// The wake-up hears of everything from now on.
    Listening,
    News,
    /// The wake-up hears nothing any more.
    Deaf(StoreError),
}

/// An order to the reading task.
#[derive(Debug)]
pub(crate) enum ReadOrder {
    Read(Read),
    Load(Scan, Vec<(Shard, OutboxId)>),
}

/// An order to the lease task.
#[derive(Debug)]
pub(crate) enum LeaseOrder {
    Beat {
        heartbeat: Heartbeat,
        joined: bool,
    },
    HandBack(RelayId, Vec<Term>),
    /// Look at the destinations kept as data, of which this version is known.
    Look(i64),
    /// Disable a destination for a reason.
    Disable(DestinationName, String),
    Leave(RelayId),
}

/// Reads until the orders end.
pub(crate) async fn read(
    store: Arc<dyn Store>,
    mut orders: UnboundedReceiver<ReadOrder>,
    to: UnboundedSender<Happening>,
) {
    while let Some(order) = orders.recv().await {
        let answer = match order {
            ReadOrder::Read(Read::Scan(request)) => store.scan(&request).await.map(Happening::Scanned),
            ReadOrder::Load(scan, ids) => {
                store.load(&ids).await.map(|loaded| Happening::Loaded(scan, loaded))
            }
            ReadOrder::Read(Read::Refill(request)) => {
                store.refill(&request).await.map(|arrivals| Happening::Refilled(request, arrivals))
            }
            ReadOrder::Read(Read::Due(request)) => {
                store.due(&request).await.map(|lanes| Happening::Due(request, lanes))
            }
        };
        if to.send(answer.unwrap_or_else(Happening::ReadFailed)).is_err() {
            return;
        }
    }
}

/// Settles until the orders end. A batch is repeated until the store answers it.
pub(crate) async fn settle(
    store: Arc<dyn Store>,
    mut orders: UnboundedReceiver<(SettleBatch, RelayId)>,
    to: UnboundedSender<Happening>,
) {
    while let Some((batch, relay)) = orders.recv().await {
        let mut pause = FIRST_PAUSE;
        loop {
            match store.settle(&batch, relay).await {
                Ok(report) => {
                    if to.send(Happening::Settled(report)).is_err() {
                        return;
                    }
                    break;
                }
                Err(error) => {
                    if to.send(Happening::SettleFailed(error)).is_err() {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

/// Listens for news until nobody wants to hear of them. While it cannot, the relay polls.
pub(crate) async fn listen(
    wake_up: Arc<dyn WakeUp>,
    untold: Arc<AtomicBool>,
    to: UnboundedSender<Happening>,
) {
    let mut pause = FIRST_DEAF_PAUSE;
    loop {
        let listening = AtomicBool::new(false);
        let heard = |heard| match heard {
            Heard::Listening => {
                listening.store(true, Ordering::Relaxed);
                let _ = to.send(Happening::Listening);
            }
            // One message in the queue says as much as a thousand.
            Heard::News if untold.swap(false, Ordering::AcqRel) => {
                let _ = to.send(Happening::News);
            }
            Heard::News => {}
        };
        let error = wake_up.listen(&heard).await;
        if listening.load(Ordering::Relaxed) {
            pause = FIRST_DEAF_PAUSE;
        }
        if to.send(Happening::Deaf(error)).is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_DEAF_PAUSE);
    }
}

/// Keeps the lease until the orders end.
pub(crate) async fn lease(
    store: Arc<dyn Store>,
    mut orders: UnboundedReceiver<LeaseOrder>,
    to: UnboundedSender<Happening>,
) {
    while let Some(order) = orders.recv().await {
        let happening = match order {
            LeaseOrder::Beat { heartbeat, joined } => {
                let asked = Instant::now();
                Happening::Lease(store.heartbeat(&heartbeat, joined).await, asked)
            }
            LeaseOrder::HandBack(relay, terms) => Happening::HandedBack(store.hand_back(relay, &terms).await),
            LeaseOrder::Look(known) => Happening::Looked(store.endpoints(known).await),
            LeaseOrder::Disable(name, reason) => {
                let result = store.disable_endpoint(&name, &reason).await;
                Happening::Disabled(name, result)
            }
            LeaseOrder::Leave(relay) => {
                // Whatever it answers: a relay that cannot say goodbye is evicted when its lease runs out.
                if let Err(error) = store.leave(relay).await {
                    tracing::warn!(%error, "could not give the lease back; it runs out by itself");
                }
                Happening::Left
            }
        };
        if to.send(happening).is_err() {
            return;
        }
    }
}
