//! Endpoints: destinations kept as data, in the table `outbox_destination`, for addresses that users supply.
//!
//! A row describes a destination as JSON with the keys that a `[[destination]]` of the configuration file has
//! (`settings`), or, without settings, only switches a destination of the configuration file off. Secrets are rows of
//! their own. Every change of either table raises one number, the *version*, under a lock that is held until the
//! change commits: whoever has read version `v` has missed nothing up to it.

mod fields;
mod settings;

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::settings::{EndpointSettings, KEYS, Settings};
use crate::delivery::DestinationName;

/// Everything that is kept as data, as of one version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndpointSet {
    /// Goes up with every change of an endpoint, a switch or a secret.
    pub version: i64,
    /// In order of name. Any number; 10,000 is the tested size.
    pub endpoints: Vec<Endpoint>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// Its name, which is part of every stored delivery.
    pub name: DestinationName,
    /// How to send to it.
    pub settings: Settings,
    /// Signing secrets that have not expired, newest first, at most [`MAX_SECRETS`].
    pub secrets: Vec<EndpointSecret>,
    /// It has secrets, and every one of them has expired: what is to be signed could not be.
    pub secrets_expired: bool,
    /// Why nothing is sent to it; `None` when it is enabled.
    pub disabled: Option<String>,
}

/// A signing secret. Shows nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointSecret {
    /// The secret itself, `whsec_…`.
    pub text: String,
    /// Not to be used from then on.
    pub expires_at: Option<Timestamp>,
}

impl fmt::Debug for EndpointSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointSecret").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// Secrets of one endpoint that may be in use at once: each signs every request, in one header.
pub const MAX_SECRETS: usize = 5;

/// One row as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointRecord {
    /// Its name.
    pub name: String,
    /// The stored settings, a JSON object; `None` when it only switches a destination of the configuration file off.
    pub settings: Option<String>,
    /// Since when nothing is sent to it; `None` when it is enabled.
    pub disabled_at: Option<Timestamp>,
    /// Why.
    pub disabled_reason: Option<String>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Its secrets that have not expired, newest first, without the secrets themselves.
    pub secrets: Vec<SecretRecord>,
}

/// A secret as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretRecord {
    /// When it was added.
    pub created_at: Timestamp,
    /// When it stops being used; `None` for never.
    pub expires_at: Option<Timestamp>,
}

/// Destinations to which a relay sends nothing at present, as it tells of them with each heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// How many there are.
    pub count: u32,
    /// The first of them by name, at most [`Blocked::TOLD`].
    pub destinations: Vec<BlockedDestination>,
}

/// A destination to which nothing is sent at present.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockedDestination {
    /// Its name.
    pub destination: String,
    /// One line for people.
    pub reason: String,
}

impl Blocked {
    /// Destinations told of by name, so that a heartbeat stays small whatever is wrong.
    pub const TOLD: usize = 100;

    /// What is told of these.
    #[must_use]
    pub fn of(mut destinations: Vec<BlockedDestination>) -> Self {
        let count = u32::try_from(destinations.len()).unwrap_or(u32::MAX);
        destinations.sort();
        destinations.truncate(Self::TOLD);
        Self { count, destinations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = EndpointSecret { text: "whsec_hunter2".into(), expires_at: None };
        assert!(!format!("{secret:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_blocked_is_told_within_bounds() {
        let one = |n: usize| BlockedDestination { destination: format!("e{n:05}"), reason: "gone".into() };
        let told = Blocked::of((0..10_000).rev().map(one).collect());
        assert_eq!((told.count, told.destinations.len()), (10_000, Blocked::TOLD));
        assert_eq!(told.destinations[0], one(0));
    }
}
