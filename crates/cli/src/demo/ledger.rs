//! The ledger: the receiver's own record against the shop's own orders.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::receiver::{Receipt, Record, Tick, Verdict};
use super::shop::STEPS;

/// What the demo adds up to.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Ledger {
    /// Orders that committed.
    pub(crate) orders_committed: u64,
    /// Orders whose transaction was rolled back after it had written its event.
    pub(crate) orders_rolled_back: u64,
    /// Events that committed with their orders.
    pub(crate) events_committed: u64,
    /// Events that the receiver took at least once.
    pub(crate) delivered: u64,
    /// Events that were taken again, because the relay was killed before it had recorded their delivery.
    pub(crate) repeated_after_kill: u64,
    /// Events that were taken again, because the receiver's answer was lost.
    pub(crate) repeated_after_lost_answer: u64,
    /// Requests that the receiver refused.
    pub(crate) refused: u64,
    /// Events that committed and never arrived.
    pub(crate) lost: u64,
    /// Events that arrived and never committed, or under a second id.
    pub(crate) phantoms: u64,
    /// Events that began before their predecessor in the same order was confirmed.
    pub(crate) order_violations: u64,
}

/// What the receiver saw of one event.
#[derive(Default)]
struct Seen<'a> {
    first: Option<&'a Receipt>,
    last_taken: Option<&'a Receipt>,
    confirmed: Option<Tick>,
}

impl Ledger {
    /// Adds up. `orders` are the numbers of the committed orders with the steps done for each, `kill` is the moment at
    /// which the relay was killed.
    pub(super) fn of(orders: &[(u64, u64)], rolled_back: u64, record: &Record, kill: Tick) -> Self {
        let mut ledger = Self {
            orders_committed: orders.len() as u64,
            orders_rolled_back: rolled_back,
            events_committed: orders.iter().map(|(_, steps)| steps).sum(),
            phantoms: record.unreadable,
            ..Self::default()
        };
        let steps: HashMap<String, u64> =
            orders.iter().map(|(number, steps)| (number.to_string(), *steps)).collect();
        let mut seen: HashMap<(&str, u64), Seen<'_>> = HashMap::new();
        let mut phantoms: HashSet<Uuid> = HashSet::new();
        for receipt in &record.receipts {
            let committed = steps.get(&receipt.order).copied().unwrap_or(0);
            if !names_a_committed_step(receipt, committed) {
                phantoms.insert(receipt.event_id);
                continue;
            }
            let event = seen.entry((&receipt.order, receipt.sequence)).or_default();
            if event.first.is_some_and(|first| first.event_id != receipt.event_id) {
                phantoms.insert(receipt.event_id);
                continue;
            }
            ledger.count(event, receipt, kill);
        }
        ledger.phantoms += phantoms.len() as u64;
        ledger.lost = ledger.events_committed - ledger.delivered;
        ledger.order_violations = violations(&seen);
        ledger
    }

    fn count<'a>(&mut self, event: &mut Seen<'a>, receipt: &'a Receipt, kill: Tick) {
        event.first.get_or_insert(receipt);
        if receipt.verdict == Verdict::Refused {
            self.refused += 1;
            return;
        }
        match event.last_taken.replace(receipt) {
            None => self.delivered += 1,
            Some(before)
                if before.verdict == Verdict::Taken && (before.arrived..receipt.arrived).contains(&kill) =>
            {
                self.repeated_after_kill += 1;
            }
            Some(_) => self.repeated_after_lost_answer += 1,
        }
        if receipt.verdict == Verdict::Taken && event.confirmed.is_none() {
            event.confirmed = receipt.answered;
        }
    }

    /// Whether everything that committed arrived, nothing else did, and all in order.
    pub(crate) fn adds_up(&self) -> bool {
        self.lost == 0 && self.phantoms == 0 && self.order_violations == 0
    }
}

/// Whether the order has come as far as the receipt says, and the type is that of its step.
fn names_a_committed_step(receipt: &Receipt, committed: u64) -> bool {
    let step = usize::try_from(receipt.sequence).ok().and_then(|sequence| sequence.checked_sub(1));
    let named = step.and_then(|step| STEPS.get(step));
    receipt.sequence <= committed && named == Some(&receipt.event_type.as_str())
}

fn violations(seen: &HashMap<(&str, u64), Seen<'_>>) -> u64 {
    let is_early = |(&(order, sequence), event): (&(&str, u64), &Seen<'_>)| {
        if sequence == 1 {
            return false;
        }
        let confirmed = seen.get(&(order, sequence - 1)).and_then(|predecessor| predecessor.confirmed);
        event.first.is_some_and(|first| confirmed.is_none_or(|confirmed| first.arrived < confirmed))
    };
    seen.iter().filter(|&entry| is_early(entry)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(id: u128, order: u64, sequence: u64, verdict: Verdict, at: Tick) -> Receipt {
        Receipt {
            event_id: Uuid::from_u128(id),
            order: order.to_string(),
            sequence,
            event_type: STEPS[usize::try_from(sequence).unwrap() - 1].to_owned(),
            verdict,
            arrived: at,
            answered: (verdict != Verdict::AnswerLost).then_some(at + 1),
        }
    }

    fn ledger(orders: &[(u64, u64)], receipts: Vec<Receipt>, kill: Tick) -> Ledger {
        Ledger::of(orders, 0, &Record { receipts, ..Record::default() }, kill)
    }

    #[test]
    fn what_arrived_once_and_in_order_adds_up() {
        let receipts = vec![
            receipt(1, 7, 1, Verdict::Refused, 1),
            receipt(1, 7, 1, Verdict::Taken, 3),
            receipt(2, 7, 2, Verdict::Taken, 5),
        ];
        let ledger = ledger(&[(7, 2)], receipts, 4);
        assert!(ledger.adds_up());
        assert_eq!((ledger.delivered, ledger.refused), (2, 1));
        assert_eq!(ledger.repeated_after_kill + ledger.repeated_after_lost_answer, 0);
    }

    #[test]
    fn repetitions_are_told_apart_by_their_cause() {
        let receipts = vec![
            receipt(1, 7, 1, Verdict::AnswerLost, 1),
            receipt(1, 7, 1, Verdict::Taken, 2),
            receipt(1, 7, 1, Verdict::Taken, 9),
        ];
        let ledger = ledger(&[(7, 1)], receipts, 5);
        assert!(ledger.adds_up());
        assert_eq!((ledger.repeated_after_lost_answer, ledger.repeated_after_kill), (1, 1));
    }

    #[test]
    fn an_event_that_overtakes_its_predecessor_is_a_violation() {
        let overlapping = vec![
            receipt(1, 7, 1, Verdict::Taken, 1),
            Receipt { arrived: 1, ..receipt(2, 7, 2, Verdict::Taken, 1) },
        ];
        assert_eq!(ledger(&[(7, 2)], overlapping, 0).order_violations, 1);
        let unconfirmed = vec![receipt(1, 7, 1, Verdict::AnswerLost, 1), receipt(2, 7, 2, Verdict::Taken, 5)];
        assert_eq!(ledger(&[(7, 2)], unconfirmed, 0).order_violations, 1);
    }

    #[test]
    fn what_never_committed_is_a_phantom_and_what_never_arrived_is_lost() {
        let receipts = vec![receipt(1, 8, 1, Verdict::Taken, 1), receipt(2, 7, 2, Verdict::Refused, 3)];
        let wrong = ledger(&[(7, 1)], receipts, 0);
        assert_eq!((wrong.phantoms, wrong.lost), (2, 1));
        assert!(!wrong.adds_up());
        let two_ids = vec![receipt(1, 7, 1, Verdict::Taken, 1), receipt(2, 7, 1, Verdict::Taken, 3)];
        assert_eq!(ledger(&[(7, 1)], two_ids, 0).phantoms, 1);
    }
}
