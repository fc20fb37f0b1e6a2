//! Destinations that are disabled, removed and brought back while relays run.

use std::sync::Arc;
use std::time::Duration;

use postbox_core::destination::{Destination, Ordering};
use postbox_core::route::Route;

use super::{ATTEMPT_TIMEOUT, Coming, Happening, World};

/// Longest time until a relay hears of a change, in microseconds.
const NEWS_US: u64 = 60_000;

/// How a destination stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Enabled,
    Disabled,
    Removed,
}

impl World {
    /// Whether a destination keeps the order of aggregates.
    pub(super) fn ordering(&self, destination: usize) -> Ordering {
        let last = destination + 1 == self.plan.destinations;
        if self.plan.unordered && last { Ordering::None } else { Ordering::Lane }
    }

    /// The destinations as a relay hears of them now.
    pub(super) fn destinations(&self) -> Vec<Destination> {
        let numbers = (0..self.plan.destinations).filter(|&n| self.roster[n] != Standing::Removed);
        let destination = |n: usize| {
            let route = Route { events: vec![format!("only.{n}"), "all".into()], ..Route::default() };
            Destination {
                ordering: self.ordering(n),
                concurrency: self.plan.concurrency,
                rate: self.plan.rate,
                lane_rate: self.plan.lane_rate,
                evidence: self.evidence_of(n),
                breaker: self.plan.breaker,
                timeout: ATTEMPT_TIMEOUT,
                retry: self.plan.retry.clone(),
                disabled: (self.roster[n] == Standing::Disabled).then(|| "simulated".into()),
                ..Destination::new(Arc::clone(&self.names[n]), route)
            }
        };
        numbers.map(destination).collect()
    }

    /// Plans the changes.
    pub(super) fn plan_changes(&mut self) {
        for _ in 0..self.plan.changes {
            let at = self.moment(self.plan.troubled_ms);
            let destination = self.random.index(self.plan.destinations);
            let standing = match self.random.index(4) {
                0 => Standing::Removed,
                1 => Standing::Enabled,
                _ => Standing::Disabled,
            };
            self.at(at, Coming::Change { destination, standing });
        }
        if self.plan.changes > 0 || self.plan.gone > 0 {
            for destination in 0..self.plan.destinations {
                let at = Duration::from_millis(self.plan.troubled_ms + 100);
                self.at(at, Coming::Change { destination, standing: Standing::Enabled });
            }
        }
    }

    pub(super) fn change(&mut self, destination: usize, standing: Standing) {
        self.roster[destination] = standing;
        if standing == Standing::Removed {
            self.witness.removed(destination);
        }
        for relay in 0..self.relays.len() {
            let life = self.relays[relay].0;
            self.soon(NEWS_US, Coming::News { relay, life });
        }
    }

    pub(super) fn news(&mut self, relay: usize, life: u64) -> Result<(), String> {
        let destinations = self.destinations();
        self.tell(relay, life, Happening::Destinations(destinations))
    }

    /// A destination said that it is gone for good: it is disabled, until an operator hears of it.
    pub(super) fn gone(&mut self, name: &str) {
        if let Some(destination) = self.names.iter().position(|other| &**other == name)
            && self.roster[destination] != Standing::Removed
        {
            self.change(destination, Standing::Disabled);
            let at = self.now + Duration::from_millis(self.random.between(1, 200));
            self.at(at, Coming::Change { destination, standing: Standing::Enabled });
        }
    }
}
