//! What a relay is started with, and what it says at its end.

use std::sync::Arc;
use std::time::Duration;

use postbox_core::delivery::DestinationName;
use postbox_core::destination::Destination;
use postbox_core::engine::{Counters, Limits, Unrouted};
use postbox_core::lease::DEFAULT_LEASE_TTL;
use postbox_core::sink::Sink;
use postbox_core::store::StoreError;
use postbox_core::wake_up::WakeUp;

use crate::roster::Endpoints;

/// How a relay works.
#[derive(Clone)]
pub struct RelayConfig {
    /// For people: host name and process id.
    pub label: String,
    /// How long the lease lasts without renewal. It is renewed three times as often.
    pub lease_ttl: Duration,
    /// How long attempts in flight may take to end after a shutdown was asked for.
    pub drain_timeout: Duration,
    /// Stop when nothing is left to do, instead of waiting for more.
    pub once: bool,
    /// Bounds on everything held in memory, and the poll interval.
    pub limits: Limits,
    /// What becomes of events that no route matches.
    pub unrouted: Unrouted,
    /// Hears of new events before the next poll; `None`: polling alone.
    pub wake_up: Option<Arc<dyn WakeUp>>,
    /// Makes sinks for endpoints kept in `outbox_destination`. `None`: they are left alone, and its rows only switch
    /// configured destinations off and on.
    pub endpoints: Option<Arc<dyn Endpoints>>,
    /// Decides the jitter of retries.
    pub seed: u64,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            label: format!("pid {}", std::process::id()),
            lease_ttl: DEFAULT_LEASE_TTL,
            drain_timeout: Duration::from_secs(15),
            once: false,
            limits: Limits::default(),
            unrouted: Unrouted::default(),
            wake_up: None,
            endpoints: None,
            // Any number will do, as long as two relays differ.
            seed: uuid::Uuid::now_v7().as_u64_pair().1,
        }
    }
}

/// A destination and the way to reach it.
#[derive(Clone)]
pub struct Binding {
    /// What the engine has to know.
    pub destination: Destination,
    /// How to send.
    pub sink: Arc<dyn Sink>,
}

/// What a relay did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Counts of everything that happened.
    pub counters: Counters,
    /// Attempts that had to be abandoned because they outlasted the drain: they will be repeated.
    pub abandoned: usize,
    /// Destinations to which nothing was sent at the end, and why.
    pub blocked: Vec<(DestinationName, String)>,
}

/// Why a relay could not start.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The database cannot be used as it is.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No attempt could ever start under this lease.
    #[error(
        "destination '{destination}' allows an attempt {timeout:?}, which does not fit into a lease of {lease_ttl:?} \
         that is renewed every {renewal:?}: raise relay.lease_ttl above {needed:?} or lower the destination's timeout"
    )]
    LeaseTooShort {
        /// The destination.
        destination: String,
        /// Its timeout.
        timeout: Duration,
        /// The lease.
        lease_ttl: Duration,
        /// Time between renewals.
        renewal: Duration,
        /// The shortest lease that would do.
        needed: Duration,
    },
    /// Two destinations of one name could not be told apart in the database.
    #[error("two destinations are named '{0}': give each its own name")]
    DuplicateDestination(String),
}

impl RelayConfig {
    /// Time between two renewals of the lease.
    #[must_use]
    pub fn renewal(&self) -> Duration {
        self.lease_ttl / 3
    }

    /// Attempts must be shorter than this: right before a renewal two thirds of the lease are left.
    #[must_use]
    pub fn longest_attempt(&self) -> Duration {
        self.lease_ttl - self.renewal()
    }

    /// Checks what cannot be seen in one value alone.
    ///
    /// # Errors
    /// When an attempt could not fit into the lease, or two destinations share a name.
    pub fn check(&self, bindings: &[Binding]) -> Result<(), RelayError> {
        for (n, Binding { destination, .. }) in bindings.iter().enumerate() {
            if bindings[..n].iter().any(|other| other.destination.name == destination.name) {
                return Err(RelayError::DuplicateDestination(destination.name.to_string()));
            }
            if destination.timeout >= self.longest_attempt() {
                return Err(RelayError::LeaseTooShort {
                    destination: destination.name.to_string(),
                    timeout: destination.timeout,
                    lease_ttl: self.lease_ttl,
                    renewal: self.renewal(),
                    needed: destination.timeout * 3 / 2,
                });
            }
        }
        Ok(())
    }
}
