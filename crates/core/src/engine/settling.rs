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
    /// Events that it takes off the to-do list.
    pub(super) events: Vec<(Shard, OutboxId)>,
    /// Deliveries that were parked before, by destination.
    pub(super) deliveries: Vec<(Shard, usize, OutboxId)>,
    /// Lanes that wait for it, once for each record.
    pub(super) lanes: Vec<LaneKey>,
    shards: Vec<Shard>,
}

impl Trail {
    /// Takes out what belongs to a shard that was lost.
    pub(super) fn take_shard(&mut self, shard: Shard, is_lost: impl Fn(&LaneKey) -> bool) -> Self {
        let (events, kept) = std::mem::take(&mut self.events).into_iter().partition(|key| key.0 == shard);
        self.events = kept;
        let (deliveries, kept) =
            std::mem::take(&mut self.deliveries).into_iter().partition(|key| key.0 == shard);
        self.deliveries = kept;
        self.lanes.retain(|lane| !is_lost(lane));
        self.shards.retain(|&other| other != shard);
        Self { events, deliveries, ..Self::default() }
    }
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
        self.trail.events.push((shard, id));
        self.trail.shards.push(shard);
    }

    /// A delivery is recorded. `destination` is named when a row of it was parked before.
    pub(super) fn record(&mut self, now: Moment, record: DeliveryRecord, destination: Option<usize>) {
        self.first_at.get_or_insert(now);
        self.trail.shards.push(record.shard);
        if let Some(destination) = destination {
            self.trail.deliveries.push((record.shard, destination, record.id));
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

    /// A lane waits for this batch.
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

    /// Drops what is not sent yet of a shard that was lost, and forgets what is waited for. What was sent before is
    /// either done already, or refused: whatever is read in a later term of this shard knows of it.
    pub(super) fn drop_shard(&mut self, shard: Shard, is_lost: impl Fn(&LaneKey) -> bool) -> [Trail; 2] {
        self.filling.dispatched.retain(|key| key.0 != shard);
        self.filling.records.retain(|record| record.shard != shard);
        if self.filling.is_empty() {
            self.first_at = None;
        }
        let outstanding = self.outstanding.as_mut().map(|trail| trail.take_shard(shard, &is_lost));
        [self.trail.take_shard(shard, &is_lost), outstanding.unwrap_or_default()]
    }
}
