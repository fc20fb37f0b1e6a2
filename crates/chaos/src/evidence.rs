//! What the database knows at the end: what was committed, and what became of it.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::clock::Micros;
use crate::stage::{Eviction, Stage};

/// One delivery as it stands.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) state: String,
    pub(crate) attempts: usize,
    /// When its receipt was written.
    pub(crate) sent_at: Option<Micros>,
}

/// The database's word.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// Events of committed changes.
    pub(crate) committed: HashSet<Uuid>,
    /// Events in the outbox without a committed change, or the other way round. The two are one transaction.
    pub(crate) torn: usize,
    pub(crate) deliveries: HashMap<Uuid, Standing>,
    pub(crate) evictions: Vec<Eviction>,
}

impl Evidence {
    pub(crate) fn take(stage: &Stage) -> Self {
        let committed = stage.query("SELECT event_id FROM change");
        let committed = committed.lines().map(|line| line.parse().expect("an event id")).collect();
        let torn = stage.number(
            "SELECT count(*) FROM outbox FULL JOIN change USING (event_id)
             WHERE outbox.id IS NULL OR change.aggregate IS NULL",
        );
        let rows = stage.query(
            "SELECT event_id, state, attempts, (extract(epoch FROM sent_at) * 1000000)::bigint
             FROM outbox JOIN outbox_delivery ON outbox_id = id",
        );
        let deliveries = rows.lines().map(|row| standing(row).expect("a delivery")).collect();
        Self { committed, torn, deliveries, evictions: stage.evictions() }
    }

    /// Events whose delivery is in this state.
    pub(crate) fn in_state(&self, state: &str) -> HashSet<Uuid> {
        let found = self.deliveries.iter().filter(|(_, standing)| standing.state == state);
        found.map(|(event, _)| *event).collect()
    }
}

fn standing(row: &str) -> Option<(Uuid, Standing)> {
    let mut columns = row.split('|');
    let event = columns.next()?.parse().ok()?;
    let state = columns.next()?.to_owned();
    let attempts = columns.next()?.parse().ok()?;
    let sent_at = columns.next()?;
    let sent_at = if sent_at.is_empty() { None } else { Some(sent_at.parse().ok()?) };
    Some((event, Standing { state, attempts, sent_at }))
}
