//! How many duplicates there may be (P5), and which event may be one.
//!
//! A duplicate is a confirmation beyond an event's first. It needs a crash, a lost answer or a lost lease, and each of
//! these can repeat only what was exposed to it:
//!
//! - **a lost answer**: the one attempt that the relay logged as `unknown`;
//! - **a kill**, **a lost lease** of a living relay, and **a stop that was cut short**: the events that were in flight or
//!   confirmed and not yet settled at that moment, that is, whose first confirmed request had come to the receiver by
//!   then, and whose receipt was written later. A request that was held up on the relay's link at that moment may come
//!   until the link is free again.
//!
//! The bound of a run is the sum of all exposures. Every single duplicate must be covered by exposures of its own event.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::audience::Sighting;
use crate::clock::Micros;
use crate::evidence::Evidence;

/// Something that may repeat what was exposed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Upset {
    pub(crate) from: Micros,
    pub(crate) until: Micros,
}

/// Duplicates and what they are allowed by.
#[derive(Debug, Default)]
pub(crate) struct Duplicates {
    /// Confirmations beyond the first of their event.
    pub(crate) count: usize,
    /// Most that lost answers can explain: the attempts logged as unknown.
    pub(crate) bound_of_answers: usize,
    /// Most that kills, lost leases and stops cut short can explain.
    pub(crate) bound_of_upsets: usize,
    /// The largest exposure of a single upset.
    pub(crate) largest_exposure: usize,
    /// Confirmations beyond what the exposures of their event explain.
    pub(crate) unexplained: Vec<Uuid>,
}

impl Duplicates {
    pub(crate) fn add_up(
        sightings: &[Sighting],
        evidence: &Evidence,
        unknown: &HashMap<Uuid, usize>,
        upsets: &[Upset],
    ) -> Self {
        let mut seen: HashMap<Uuid, (Micros, usize)> = HashMap::new();
        for sighting in sightings {
            let (first, times) = seen.entry(sighting.event).or_insert((sighting.at, 0));
            *first = sighting.at.min(*first);
            *times += 1;
        }
        let mut allowed: HashMap<Uuid, usize> = unknown.clone();
        let mut duplicates = Self { bound_of_answers: unknown.values().sum(), ..Self::default() };
        for upset in upsets {
            let exposed = exposed(&seen, evidence, *upset);
            duplicates.bound_of_upsets += exposed.len();
            duplicates.largest_exposure = duplicates.largest_exposure.max(exposed.len());
            for event in exposed {
                *allowed.entry(event).or_default() += 1;
            }
        }
        for (event, (_, times)) in seen {
            let beyond = times - 1;
            duplicates.count += beyond;
            let unexplained = beyond.saturating_sub(allowed.get(&event).copied().unwrap_or(0));
            duplicates.unexplained.extend(std::iter::repeat_n(event, unexplained));
        }
        duplicates
    }

    #[cfg(test)]
    fn bound(&self) -> usize {
        self.bound_of_answers + self.bound_of_upsets
    }
}

fn exposed(seen: &HashMap<Uuid, (Micros, usize)>, evidence: &Evidence, upset: Upset) -> HashSet<Uuid> {
    let receipt = |event| evidence.deliveries.get(event).and_then(|standing| standing.sent_at);
    seen.iter()
        .filter(|(_, (first, _))| *first <= upset.until)
        .filter(|(event, _)| receipt(event).is_none_or(|written| written >= upset.from))
        .map(|(event, _)| *event)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Standing;

    fn duplicates(receipt: Micros, seen: &[Micros], unknown: usize, upsets: &[Upset]) -> Duplicates {
        let event = Uuid::from_u128(1);
        let standing = Standing { state: "delivered".into(), attempts: 1, sent_at: Some(receipt) };
        let evidence = Evidence {
            committed: HashSet::from([event]),
            torn: 0,
            deliveries: HashMap::from([(event, standing)]),
            evictions: Vec::new(),
        };
        let sightings: Vec<_> = seen.iter().map(|&at| Sighting { event, at }).collect();
        Duplicates::add_up(&sightings, &evidence, &HashMap::from([(event, unknown)]), upsets)
    }

    const KILL: Upset = Upset { from: 10, until: 10 };

    #[test]
    fn what_was_in_flight_or_not_settled_at_a_kill_may_come_once_more() {
        assert!(duplicates(20, &[5, 15], 0, &[KILL]).unexplained.is_empty());
        assert_eq!(duplicates(20, &[5, 15, 16], 0, &[KILL]).unexplained.len(), 1);
    }

    #[test]
    fn what_was_settled_before_or_sent_after_a_kill_may_not() {
        assert_eq!(duplicates(8, &[5, 15], 0, &[KILL]).unexplained.len(), 1);
        assert_eq!(duplicates(30, &[12, 15], 0, &[KILL]).unexplained.len(), 1);
    }

    #[test]
    fn each_lost_answer_explains_one_duplicate() {
        assert!(duplicates(20, &[5, 15], 1, &[]).unexplained.is_empty());
        let twice = duplicates(20, &[5, 15, 16], 1, &[]);
        assert_eq!((twice.count, twice.bound(), twice.unexplained.len()), (2, 1, 1));
    }
}
