//! What a comparison came to.

use serde::Serialize;
use uuid::Uuid;

/// One kind of finding: all are counted, the first are named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Findings {
    pub(crate) count: u64,
    /// The first of them, in order of `event_id` (`out_of_order`: of aggregate).
    pub(crate) events: Vec<Uuid>,
}

impl Findings {
    /// Counts `event`, and names it while fewer than `named` are.
    pub(crate) fn add(&mut self, event: Uuid, named: usize) {
        self.count += 1;
        if self.events.len() < named {
            self.events.push(event);
        }
    }
}

/// One destination and its consumer's inbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) destination: String,
    /// Where the other side comes from: the consumer's name, or that of the list.
    pub(crate) consumer: String,
    /// Delivered by the outbox's own record.
    pub(crate) delivered: u64,
    /// Received, each event once.
    pub(crate) received: u64,
    /// Delivered, but not received.
    pub(crate) missing: Findings,
    /// Received, but never routed there.
    pub(crate) extra: Findings,
    /// Received more than once.
    pub(crate) duplicated: Findings,
    /// Accepted after an event that follows it in its aggregate.
    pub(crate) out_of_order: Findings,
    /// Not decided yet: on the to-do list, tried again, waiting or held.
    pub(crate) open: u64,
    /// Dead, discarded or expired, and not received.
    pub(crate) given_up: u64,
    /// Not judged, because one of the sides no longer remembers that long ago.
    pub(crate) beyond_memory: u64,
}

impl Comparison {
    /// For people.
    pub(crate) fn table(&self) -> String {
        let lines = [
            (self.delivered, "delivered"),
            (self.received, "received"),
            (self.missing.count, "missing"),
            (self.extra.count, "extra"),
            (self.duplicated.count, "duplicated"),
            (self.out_of_order.count, "out of order"),
            (self.open, "open: not delivered yet"),
            (self.given_up, "given up: dead, discarded or expired"),
            (self.beyond_memory, "not judged: older than what one of the sides remembers"),
        ];
        let mut text = format!("{:?}, received by {:?}\n", self.destination, self.consumer);
        for (count, what) in lines {
            text.push_str(&format!("\n{count:>10}  {what}"));
        }
        text
    }

    /// Everything that is named, with what is wrong with it.
    pub(crate) fn findings(&self) -> impl Iterator<Item = (&'static str, &Findings)> {
        [
            ("missing", &self.missing),
            ("extra", &self.extra),
            ("duplicated", &self.duplicated),
            ("out of order", &self.out_of_order),
        ]
        .into_iter()
        .filter(|(_, findings)| findings.count > 0)
    }
}
