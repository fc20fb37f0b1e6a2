//! Records on their way to the database: one batch being filled, at most one being settled.

use std::time::Duration;

use super::Moment;
use super::lane::LaneKey;
use crate::delivery::DeliveryRecord;
use crate::event::{OutboxId, Shard};
use crate::store::SettleBatch;

/// What a batch will let the engine forget once it is confirmed.
#[derive(Debug, Default)]
pub(super) struct Trail {
    pub(super) events: Vec<OutboxId>,
    pub(super) deliveries: Vec<(usize, OutboxId)>,
    pub(super) lanes: Vec<LaneKey>,
    pub(super) shards: Vec<Shard>,
}

/// The batch being filled and the one being settled.
#[derive(Debug)]
pub(super) struct Settling {
    /// Number of the batch being filled, from 1.
    pub(super) number: u64,
    filling: SettleBatch,
    trail: Trail,
    first_at: Option<Moment>,
    outstanding: Option<Trail>,
}

impl Settling {
    pub(super) fn new() -> Self {
        Self {
            number: 1,
            filling: SettleBatch::default(),
            trail: Trail::default(),
            first_at: None,
            outstanding: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filling.is_empty() && self.outstanding.is_none()
    }

    /// An event leaves the to-do list.
    pub(super) fn dispatch(&mut self, now: Moment, shard: Shard, id: OutboxId) {
        self.first_at.get_or_insert(now);
        self.filling.dispatched.push((shard, id));
        self.trail.events.push(id);
        self.trail.shards.push(shard);
    }

    /// A delivery is recorded. `destination` is named when a row of it was parked before.
    pub(super) fn record(&mut self, now: Moment, record: DeliveryRecord, destination: Option<usize>) {
        self.first_at.get_or_insert(now);
        self.trail.shards.push(record.shard);
        if let Some(destination) = destination {
            self.trail.deliveries.push((destination, record.id));
        }
        self.filling.records.push(record);
    }

    /// A delivery that this very batch parks came to its end before the batch was sent.
    pub(super) fn replace(&mut self, record: DeliveryRecord) {
        let parked = self
            .filling
            .records
            .iter_mut()
            .rev()
            .find(|other| other.id == record.id && other.destination == record.destination);
        if let Some(parked) = parked {
            *parked = record;
        }
    }

    /// A closed lane waits for this batch.
    pub(super) fn note_lane(&mut self, lane: LaneKey) {
        self.trail.lanes.push(lane);
    }

    /// When the batch being filled must be sent.
    pub(super) fn flush_at(&self, delay: Duration) -> Option<Moment> {
        if self.outstanding.is_some() { None } else { self.first_at.map(|first| first + delay) }
    }

    /// The batch to send now, if one is due and none is outstanding.
    pub(super) fn take(&mut self, now: Moment, records: usize, delay: Duration) -> Option<SettleBatch> {
        let due = self.flush_at(delay)? <= now || self.filling.records.len() >= records;
        if !due {
            return None;
        }
        self.first_at = None;
        self.number += 1;
        self.outstanding = Some(std::mem::take(&mut self.trail));
        Some(std::mem::take(&mut self.filling))
    }

    /// The outstanding batch was confirmed.
    pub(super) fn confirmed(&mut self) -> Trail {
        self.outstanding.take().unwrap_or_default()
    }

    /// Whether anything of `shard` is not confirmed yet.
    pub(super) fn holds(&self, shard: Shard) -> bool {
        self.trail.shards.contains(&shard)
            || self.outstanding.as_ref().is_some_and(|trail| trail.shards.contains(&shard))
    }

    /// Drops what is being filled for a shard that was lost, and returns what that lets the engine forget.
    pub(super) fn drop_shard(&mut self, shard: Shard) -> (Vec<OutboxId>, Vec<OutboxId>) {
        let mut events = Vec::new();
        self.filling.dispatched.retain(|&(s, id)| {
            if s == shard {
                events.push(id);
            }
            s != shard
        });
        let mut deliveries = Vec::new();
        self.filling.records.retain(|record| {
            if record.shard == shard {
                deliveries.push(record.id);
            }
            record.shard != shard
        });
        self.trail.events.retain(|id| !events.contains(id));
        self.trail.shards.retain(|&s| s != shard);
        if self.filling.is_empty() {
            self.first_at = None;
        }
        (events, deliveries)
    }

    /// Forgets the notes of lanes that are gone.
    pub(super) fn forget_lanes(&mut self, gone: impl Fn(&LaneKey) -> bool) {
        self.trail.lanes.retain(|lane| !gone(lane));
        if let Some(trail) = &mut self.outstanding {
            trail.lanes.retain(|lane| !gone(lane));
        }
    }

    /// Takes out the ghosts of deliveries that were dropped with their shard.
    pub(super) fn forget_deliveries(&mut self, ids: &[OutboxId]) -> Vec<(usize, OutboxId)> {
        let (gone, kept) =
            std::mem::take(&mut self.trail.deliveries).into_iter().partition(|(_, id)| ids.contains(id));
        self.trail.deliveries = kept;
        gone
    }
}
