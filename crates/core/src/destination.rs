//! What the engine has to know of a destination; how to reach it is the sink's own business.

use std::time::Duration;

use crate::delivery::DestinationName;
use crate::retry::RetryPolicy;
use crate::route::Route;

/// A destination as the engine sees it.
#[derive(Debug, Clone)]
pub struct Destination {
    /// Unique, stable name: it is part of every stored delivery.
    pub name: DestinationName,
    /// Which events go there.
    pub route: Route,
    /// Attempts in flight at once, at least 1.
    pub concurrency: usize,
    /// Longest time one attempt may take; no attempt starts when less is left of the lease.
    pub timeout: Duration,
    /// When and how often to try again.
    pub retry: RetryPolicy,
}

/// Attempts in flight at once per destination when nothing else is said.
pub const DEFAULT_CONCURRENCY: usize = 64;

/// Longest time of one attempt when nothing else is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
