//! Leases: which relay works on which shard.
//!
//! A relay is a row in `outbox_relay` with a deadline that it keeps moving forward (`leased_until`); all shards it
//! owns live and die with that row. A shard's row (`outbox_shard`) changes only when the shard changes hands, and
//! its `epoch` goes up by one each time: the pair (shard, epoch) is a *term* and names one owner for ever.
//!
//! - **Who is authoritative:** the database's clock and the shard's row. A relay is evicted by deleting its row under
//!   a row lock once `leased_until` has passed; a renewal finds its own row or learns that it lost everything.
//! - **Fencing:** every settle names the terms it relies on and locks those shard rows in share mode; records of a
//!   term that is not current are refused, the others are stored.
//! - **Timing:** a relay measures its lease from *before* it sent the renewal, on its own monotonic clock, so it always
//!   believes in a shorter lease than the database does. It starts an attempt only when
//!   `now + attempt timeout <= deadline`.

use std::time::Duration;

use uuid::Uuid;

use crate::endpoint::Blocked;
use crate::event::Shard;

/// Time a lease lasts without renewal when nothing else is said.
pub const DEFAULT_LEASE_TTL: Duration = Duration::from_secs(20);

/// Identity of one running relay: a new one for every start, and after every eviction.
pub type RelayId = Uuid;

/// One ownership of one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term {
    /// The shard.
    pub shard: Shard,
    /// Fencing token: goes up each time the shard changes hands.
    pub epoch: i64,
}

/// What a relay tells of itself with each heartbeat.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// The relay.
    pub relay: RelayId,
    /// For people: host name and process id.
    pub label: String,
    /// How long the lease shall last from now.
    pub ttl: Duration,
    /// Attempts in flight at this moment.
    pub in_flight: u32,
    /// Whether the relay may be given further shards (false while it shuts down).
    pub accepting: bool,
    /// Version of the [`crate::endpoint::EndpointSet`] that it works by; 0 before it has read one.
    pub destinations_version: i64,
    /// Destinations to which it sends nothing at present.
    pub blocked: Blocked,
}

impl Heartbeat {
    /// A relay that has just begun: it accepts shards, and has nothing to tell yet.
    pub fn new(relay: RelayId, label: impl Into<String>, ttl: Duration) -> Self {
        Self {
            relay,
            label: label.into(),
            ttl,
            in_flight: 0,
            accepting: true,
            destinations_version: 0,
            blocked: Blocked::default(),
        }
    }
}

/// What the database answered to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// The lease holds.
    Held {
        /// Every shard this relay owns now, newly taken ones included.
        terms: Vec<Term>,
        /// Relays alive, this one included, at least 1. The fair share is `ceil(SHARD_COUNT / live)`.
        live: u32,
    },
    /// The lease had run out and the relay was evicted: it owns nothing and must come back under a new id.
    Evicted,
}

/// Shards each of `live` relays should own at most.
#[must_use]
pub fn fair_share(live: u32) -> usize {
    usize::from(crate::event::SHARD_COUNT).div_ceil(live.max(1) as usize)
}
