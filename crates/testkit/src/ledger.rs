//! Adding up what a receiver really got: delivered, repeated, out of order, lost, made up.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use uuid::Uuid;

/// Which moments of a request an [`Entry`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// It was read and answered at once.
    Whole,
    /// It was read; its answer, if any, comes as an entry of its own.
    Arrival,
    /// A request that arrived earlier was answered.
    Answer,
}

/// A line of a receiver's record. Lines stand in the order of what happened.
///
/// That two events of a lane were under way at the same time shows only when the receiver takes a moment to answer: a
/// record meant to prove order should come from a receiver with a delay.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// What happened.
    pub moment: Moment,
    /// Identity of the event.
    pub event_id: Uuid,
    /// Kind of the aggregate.
    pub aggregate_type: String,
    /// Identity of the aggregate.
    pub aggregate_id: String,
    /// Sequence in the aggregate.
    pub sequence: i64,
    /// Number of the attempt, as the sender counted it.
    pub attempt: u32,
    /// Whether it was marked as a replay.
    pub replay: bool,
    /// The status of the answer; `None` when the sender got none.
    pub status: Option<u16>,
}

impl Entry {
    fn is_confirmed(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Reads a file written by [`crate::receiver::RecordFile`]. A last line that was cut off is left out.
///
/// # Errors
/// When the file cannot be read, or another line than the last is no entry.
pub fn read(path: &Path) -> std::io::Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path)?;
    // Behind the last line break is nothing, or a line that was not written to its end.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).map_err(std::io::Error::other)).collect()
}

/// What a record adds up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Requests in all.
    pub requests: usize,
    /// Committed events that were confirmed at least once.
    pub delivered: usize,
    /// Confirmations beyond the first of an event, replays not counted.
    pub repeated: usize,
    /// Events that were sent before their predecessor in the lane was confirmed or given up: predecessor and event.
    pub order_violations: Vec<(Uuid, Uuid)>,
    /// Committed events that were neither confirmed nor given up.
    pub lost: Vec<Uuid>,
    /// Events that were sent and never committed.
    pub phantoms: Vec<Uuid>,
}

/// What has been seen of one lane.
#[derive(Default)]
struct Lane {
    events: BTreeMap<i64, Uuid>,
    confirmed: BTreeSet<i64>,
    started: BTreeSet<i64>,
}

impl Lane {
    /// The predecessor of `entry`, which now begins, and its event, unless the predecessor was confirmed or given up.
    fn violation(&self, entry: &Entry, given_up: &HashSet<Uuid>) -> Option<(Uuid, Uuid)> {
        let before = entry.sequence - 1;
        if before < 1 || self.confirmed.contains(&before) {
            return None;
        }
        match self.events.get(&before) {
            Some(predecessor) if given_up.contains(predecessor) => None,
            Some(predecessor) => Some((*predecessor, entry.event_id)),
            // One that was given up untried never appears here, so its number is not known from the record.
            None if !given_up.is_empty() => None,
            None => Some((Uuid::nil(), entry.event_id)),
        }
    }
}

impl Ledger {
    /// Adds up `entries`, in the order in which they were received, of one destination.
    ///
    /// `committed` are the events that had to arrive, `given_up` those that rightly may not have (dead letters,
    /// discarded and expired ones).
    #[must_use]
    pub fn of(entries: &[Entry], committed: &HashSet<Uuid>, given_up: &HashSet<Uuid>) -> Self {
        let mut lanes: HashMap<(&str, &str), Lane> = HashMap::new();
        let mut confirmed: HashSet<Uuid> = HashSet::new();
        let mut phantoms: BTreeSet<Uuid> = BTreeSet::new();
        let mut ledger = Self::default();
        for entry in entries {
            if !committed.contains(&entry.event_id) {
                phantoms.insert(entry.event_id);
            }
            let lane = lanes.entry((&entry.aggregate_type, &entry.aggregate_id)).or_default();
            if entry.moment != Moment::Answer {
                ledger.requests += 1;
                let first_attempt = lane.started.insert(entry.sequence);
                lane.events.insert(entry.sequence, entry.event_id);
                if first_attempt && !entry.replay {
                    ledger.order_violations.extend(lane.violation(entry, given_up));
                }
            }
            if entry.is_confirmed() {
                lane.confirmed.insert(entry.sequence);
                if !confirmed.insert(entry.event_id) && !entry.replay {
                    ledger.repeated += 1;
                }
            }
        }
        ledger.delivered = confirmed.intersection(committed).count();
        ledger.lost = committed
            .iter()
            .filter(|&event| !confirmed.contains(event) && !given_up.contains(event))
            .copied()
            .collect();
        ledger.lost.sort_unstable();
        ledger.phantoms = phantoms.into_iter().collect();
        ledger
    }

    /// Whether nothing was lost, made up or out of order.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        self.lost.is_empty() && self.phantoms.is_empty() && self.order_violations.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn entry(number: u128, lane: &str, sequence: i64, status: Option<u16>) -> Entry {
        Entry {
            moment: Moment::Whole,
            event_id: id(number),
            aggregate_type: "order".to_owned(),
            aggregate_id: lane.to_owned(),
            sequence,
            attempt: 1,
            replay: false,
            status,
        }
    }

    fn ledger(entries: &[Entry], committed: &[u128], given_up: &[u128]) -> Ledger {
        let ids = |numbers: &[u128]| numbers.iter().map(|&number| id(number)).collect();
        Ledger::of(entries, &ids(committed), &ids(given_up))
    }

    #[test]
    fn a_clean_run_adds_up() {
        let ledger = ledger(
            &[entry(1, "a", 1, Some(200)), entry(3, "b", 1, Some(204)), entry(2, "a", 2, Some(200))],
            &[1, 2, 3],
            &[],
        );
        assert!(ledger.adds_up());
        assert_eq!((ledger.requests, ledger.delivered, ledger.repeated), (3, 3, 0));
    }

    #[test]
    fn failures_and_lost_answers_before_a_confirmation_are_no_repetition() {
        let ledger = ledger(
            &[entry(1, "a", 1, Some(503)), entry(1, "a", 1, None), entry(1, "a", 1, Some(200))],
            &[1],
            &[],
        );
        assert!(ledger.adds_up());
        assert_eq!(ledger.repeated, 0);
    }

    #[test]
    fn a_second_confirmation_is_a_repetition_and_no_violation() {
        let ledger = ledger(
            &[entry(1, "a", 1, Some(200)), entry(2, "a", 2, Some(200)), entry(1, "a", 1, Some(200))],
            &[1, 2],
            &[],
        );
        assert!(ledger.adds_up());
        assert_eq!(ledger.repeated, 1);
    }

    #[test]
    fn an_event_sent_before_its_predecessor_was_confirmed_is_a_violation() {
        let unconfirmed =
            [entry(1, "a", 1, Some(503)), entry(2, "a", 2, Some(503)), entry(1, "a", 1, Some(200))];
        assert_eq!(ledger(&unconfirmed, &[1], &[]).order_violations, [(id(1), id(2))]);
        let skipped = [entry(2, "a", 2, Some(200)), entry(1, "a", 1, Some(200))];
        assert_eq!(ledger(&skipped, &[1, 2], &[]).order_violations, [(Uuid::nil(), id(2))]);
    }

    #[test]
    fn an_event_that_begins_before_its_predecessor_was_answered_is_a_violation() {
        let at = |moment, entry: Entry| Entry { moment, ..entry };
        let overlapping = [
            at(Moment::Arrival, entry(1, "a", 1, None)),
            at(Moment::Arrival, entry(2, "a", 2, None)),
            at(Moment::Answer, entry(1, "a", 1, Some(200))),
            at(Moment::Answer, entry(2, "a", 2, Some(200))),
        ];
        let overlapped = ledger(&overlapping, &[1, 2], &[]);
        assert_eq!(overlapped.order_violations, [(id(1), id(2))]);
        assert_eq!((overlapped.requests, overlapped.delivered), (2, 2));
        let [first, second, answer, last] = overlapping;
        assert!(ledger(&[first, answer, second, last], &[1, 2], &[]).adds_up());
    }

    #[test]
    fn an_event_behind_one_that_was_given_up_is_in_order() {
        let ledger = ledger(&[entry(1, "a", 1, Some(400)), entry(2, "a", 2, Some(200))], &[1, 2], &[1]);
        assert!(ledger.adds_up(), "{ledger:?}");
    }

    #[test]
    fn lost_and_made_up_events_are_named() {
        let ledger = ledger(&[entry(1, "a", 1, Some(500)), entry(9, "b", 1, Some(200))], &[1, 2], &[]);
        assert_eq!(
            (ledger.lost.as_slice(), ledger.phantoms.as_slice()),
            ([id(1), id(2)].as_slice(), [id(9)].as_slice())
        );
        assert!(!ledger.adds_up());
    }

    #[test]
    fn a_record_whose_last_line_was_cut_off_is_read_up_to_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let line = serde_json::to_string(&entry(1, "a b\n\"", 1, None)).unwrap();
        std::fs::write(&path, format!("{line}\n{line}\n{}", &line[..20])).unwrap();
        assert_eq!(read(&path).unwrap().len(), 2);
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(&path).unwrap(), []);
    }
}
