//! What was accepted before, as far back as fits into a bounded memory.

use std::collections::{HashMap, HashSet, VecDeque};

use super::delivery::Delivery;

/// Events, and aggregates, that are remembered; then the oldest are forgotten.
const MEMORY: usize = 100_000;

/// What is to be said of a delivery in view of the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing: it is new and the next one of its aggregate, or there is nothing to compare it with.
    Fine,
    /// It was accepted before.
    Duplicate,
    /// It comes after a later one of its aggregate, which had this sequence.
    Stale(u64),
    /// Something of its aggregate is missing before it; this would have been next.
    Gap(u64),
}

/// Accepted events and the highest accepted sequence per aggregate.
#[derive(Debug)]
pub(super) struct Memory {
    capacity: usize,
    events: HashSet<String>,
    oldest_events: VecDeque<String>,
    lanes: HashMap<(String, String), u64>,
    oldest_lanes: VecDeque<(String, String)>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::of(MEMORY)
    }
}

impl Memory {
    fn of(capacity: usize) -> Self {
        Self {
            capacity,
            events: HashSet::new(),
            oldest_events: VecDeque::new(),
            lanes: HashMap::new(),
            oldest_lanes: VecDeque::new(),
        }
    }

    /// Compares `delivery` with what was accepted before.
    pub(super) fn judge(&self, delivery: &Delivery) -> Mark {
        if delivery.event_id.as_ref().is_some_and(|id| self.events.contains(id)) {
            return Mark::Duplicate;
        }
        let last = delivery.lane().and_then(|lane| self.lanes.get(&lane).copied());
        match (last, delivery.sequence) {
            (Some(last), Some(sequence)) if sequence <= last => Mark::Stale(last),
            (Some(last), Some(sequence)) if sequence > last + 1 => Mark::Gap(last + 1),
            _ => Mark::Fine,
        }
    }

    /// Remembers that `delivery` was accepted.
    pub(super) fn accept(&mut self, delivery: &Delivery) {
        if let Some(id) = &delivery.event_id
            && self.events.insert(id.clone())
        {
            self.oldest_events.push_back(id.clone());
            if self.oldest_events.len() > self.capacity
                && let Some(oldest) = self.oldest_events.pop_front()
            {
                self.events.remove(&oldest);
            }
        }
        let (Some(lane), Some(sequence)) = (delivery.lane(), delivery.sequence) else { return };
        if let Some(last) = self.lanes.get_mut(&lane) {
            *last = sequence.max(*last);
            return;
        }
        self.lanes.insert(lane.clone(), sequence);
        self.oldest_lanes.push_back(lane);
        if self.oldest_lanes.len() > self.capacity
            && let Some(oldest) = self.oldest_lanes.pop_front()
        {
            self.lanes.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(id: &str, aggregate: &str, sequence: u64) -> Delivery {
        Delivery {
            event_id: Some(id.to_owned()),
            aggregate_type: Some("order".to_owned()),
            aggregate_id: Some(aggregate.to_owned()),
            sequence: Some(sequence),
            ..Delivery::default()
        }
    }

    #[test]
    fn duplicates_gaps_and_late_comers_are_told_apart() {
        let mut memory = Memory::default();
        for (id, aggregate, sequence, mark) in [
            ("a", "42", 5, Mark::Fine),
            ("a", "42", 5, Mark::Duplicate),
            ("b", "42", 6, Mark::Fine),
            ("c", "42", 8, Mark::Gap(7)),
            ("d", "42", 7, Mark::Stale(8)),
            ("e", "42", 9, Mark::Fine),
            ("f", "43", 9, Mark::Fine),
        ] {
            let delivery = delivery(id, aggregate, sequence);
            assert_eq!(memory.judge(&delivery), mark, "{id}");
            memory.accept(&delivery);
        }
    }

    #[test]
    fn what_was_not_accepted_is_no_duplicate_and_leaves_a_gap() {
        let mut memory = Memory::default();
        memory.accept(&delivery("a", "42", 1));
        assert_eq!(memory.judge(&delivery("b", "42", 2)), Mark::Fine);
        assert_eq!(memory.judge(&delivery("b", "42", 2)), Mark::Fine);
        assert_eq!(memory.judge(&delivery("c", "42", 3)), Mark::Gap(2));
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut memory = Memory::of(2);
        for n in 0..10_u64 {
            memory.accept(&delivery(&n.to_string(), &n.to_string(), 1));
        }
        assert_eq!((memory.events.len(), memory.oldest_events.len()), (2, 2));
        assert_eq!((memory.lanes.len(), memory.oldest_lanes.len()), (2, 2));
        assert_eq!(memory.judge(&delivery("9", "9", 1)), Mark::Duplicate);
        assert_eq!(memory.judge(&delivery("0", "0", 1)), Mark::Fine);
    }
}
