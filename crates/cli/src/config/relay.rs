//! `[relay]`.

use std::time::Duration;

use postbox_core::engine::Unrouted;

use super::document::{Located, Section};

/// How a relay hears of new events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeUpChoice {
    /// By looking.
    Poll,
    /// The database tells it as well.
    Notify,
}

/// How the relay works.
#[derive(Debug, Clone)]
pub(crate) struct RelaySection {
    pub(crate) poll_interval: Duration,
    pub(crate) lease_ttl: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) max_in_flight: usize,
    pub(crate) unrouted: Unrouted,
    pub(crate) wake_up: WakeUpChoice,
}

/// The keys that a file gives; one that is absent, or wrong and therefore noted, is `None`.
#[derive(Debug, Default)]
pub(crate) struct RelayOverrides {
    pub(crate) poll_interval: Option<Duration>,
    pub(crate) lease_ttl: Option<Located<Duration>>,
    pub(crate) drain_timeout: Option<Duration>,
    pub(crate) max_in_flight: Option<usize>,
    pub(crate) unrouted: Option<Unrouted>,
    pub(crate) wake_up: Option<WakeUpChoice>,
}

impl RelayOverrides {
    pub(crate) fn read(mut section: Section<'_>) -> Self {
        let found = Self {
            poll_interval: section
                .duration("poll_interval", Duration::from_millis(1)..=Duration::from_secs(60))
                .map(|found| found.value),
            lease_ttl: section.duration("lease_ttl", Duration::from_secs(1)..=Duration::from_secs(600)),
            drain_timeout: section
                .duration("drain_timeout", Duration::ZERO..=Duration::from_secs(600))
                .map(|found| found.value),
            max_in_flight: section.count("max_in_flight", 1..=100_000),
            unrouted: section.choice("unrouted", &[("park", Unrouted::Park), ("skip", Unrouted::Skip)]),
            wake_up: section
                .choice("wake_up", &[("poll", WakeUpChoice::Poll), ("notify", WakeUpChoice::Notify)]),
        };
        section.finish();
        found
    }

    /// The section, when every key is given.
    pub(crate) fn complete(self) -> Option<RelaySection> {
        Some(RelaySection {
            poll_interval: self.poll_interval?,
            lease_ttl: self.lease_ttl?.value,
            drain_timeout: self.drain_timeout?,
            max_in_flight: self.max_in_flight?,
            unrouted: self.unrouted?,
            wake_up: self.wake_up?,
        })
    }

    /// The section, with what is not given taken from `base`.
    pub(crate) fn over(self, base: &RelaySection) -> RelaySection {
        RelaySection {
            poll_interval: self.poll_interval.unwrap_or(base.poll_interval),
            lease_ttl: self.lease_ttl.map_or(base.lease_ttl, |found| found.value),
            drain_timeout: self.drain_timeout.unwrap_or(base.drain_timeout),
            max_in_flight: self.max_in_flight.unwrap_or(base.max_in_flight),
            unrouted: self.unrouted.unwrap_or(base.unrouted),
            wake_up: self.wake_up.unwrap_or(base.wake_up),
        }
    }
}
