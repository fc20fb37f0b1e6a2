//! The database as a model: a few ordered maps that keep the contract of `postbox_core::store` to the letter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use postbox_core::delivery::{DeliveryRecord, DeliveryState, ParkedDelivery, ParkedLane};
use postbox_core::event::{Event, LaneId, OutboxId, Payload, SHARD_COUNT, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term, fair_share};
use postbox_core::store::{
    Arrival, Beginning, DueRequest, RefillRequest, Scan, ScanRequest, ScanRow, SettleBatch, SettleReport,
    ShardScanned,
};
use uuid::Uuid;

use super::plan::SeamFault;

/// A producer's transaction.
pub(super) type Transaction = u64;

/// A row of `outbox_delivery`.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The event's aggregate.
    pub lane_id: LaneId,
    /// Its shard.
    pub shard: Shard,
    /// Where the delivery stands.
    pub state: DeliveryState,
    /// Attempts as the relay counted them.
    pub attempts: u32,
    /// For a head: when it is due.
    pub due_at: Duration,
    /// An operator had it sent again.
    pub replay: bool,
    /// Nobody knows what became of the last attempt.
    pub maybe_delivered: bool,
    uncounted: u32,
    /// An attempt that began and of which nothing more is recorded.
    begun: Option<u32>,
    /// When an attempt began last.
    pub begun_at: Duration,
}

impl Row {
    /// Attempts that were made, as far as anybody knows.
    pub(super) fn known_attempts(&self) -> u32 {
        self.begun.unwrap_or(self.attempts)
    }
}

#[derive(Debug)]
struct Owner {
    relay: Option<RelayId>,
    epoch: i64,
}

/// The whole database.
#[derive(Debug)]
pub(super) struct SimStore {
    /// The database's clock.
    pub now: Duration,
    events: BTreeMap<OutboxId, Arc<Event>>,
    committed: BTreeSet<OutboxId>,
    open: BTreeMap<Transaction, Vec<OutboxId>>,
    sequences: BTreeMap<LaneId, i64>,
    locks: BTreeMap<LaneId, Transaction>,
    last_id: OutboxId,
    pending: BTreeSet<(Shard, OutboxId)>,
    /// Deliveries by event and destination.
    pub deliveries: BTreeMap<(OutboxId, Arc<str>), Row>,
    owners: Vec<Owner>,
    relays: BTreeMap<RelayId, Duration>,
    evicted: Vec<RelayId>,
    fault: Option<SeamFault>,
}

impl SimStore {
    /// An empty database.
    #[must_use]
    pub(super) fn new(fault: Option<SeamFault>) -> Self {
        Self {
            now: Duration::ZERO,
            events: BTreeMap::new(),
            committed: BTreeSet::new(),
            open: BTreeMap::new(),
            sequences: BTreeMap::new(),
            locks: BTreeMap::new(),
            last_id: 0,
            pending: BTreeSet::new(),
            deliveries: BTreeMap::new(),
            owners: (0..SHARD_COUNT).map(|_| Owner { relay: None, epoch: 0 }).collect(),
            relays: BTreeMap::new(),
            evicted: Vec::new(),
            fault,
        }
    }

    /// Writes an event in a transaction; `None` when another transaction holds the aggregate.
    pub(super) fn insert(
        &mut self,
        transaction: Transaction,
        lane_id: LaneId,
        event_type: &str,
    ) -> Option<OutboxId> {
        if *self.locks.entry(lane_id).or_insert(transaction) != transaction {
            return None;
        }
        let sequence = self.sequences.entry(lane_id).or_insert(0);
        *sequence += 1;
        self.last_id += 1;
        let event = Event {
            id: self.last_id,
            event_id: Uuid::from_u128(u128::from(self.last_id.unsigned_abs())),
            lane_id,
            // Few shards, so that aggregates share them, and far apart, so that relays do too.
            shard: u16::try_from(lane_id % 3 * 21).unwrap_or(0),
            aggregate_type: "order".into(),
            aggregate_id: lane_id.to_string(),
            aggregate_seq: *sequence,
            event_type: event_type.into(),
            payload: Payload::Inline("{}".into()),
            headers: None,
            created_at: Timestamp::UNIX_EPOCH,
        };
        self.events.insert(self.last_id, Arc::new(event));
        self.open.entry(transaction).or_default().push(self.last_id);
        Some(self.last_id)
    }

    /// Ends a transaction. Returns the events it committed.
    pub(super) fn end(&mut self, transaction: Transaction, commit: bool) -> Vec<Arc<Event>> {
        let ids = self.open.remove(&transaction).unwrap_or_default();
        self.locks.retain(|_, holder| *holder != transaction);
        let mut committed = Vec::new();
        for id in ids.into_iter().rev() {
            let Some(event) = self.events.get(&id).cloned() else { continue };
            if commit {
                self.committed.insert(id);
                self.pending.insert((event.shard, id));
                committed.push(event);
            } else {
                self.events.remove(&id);
                *self.sequences.entry(event.lane_id).or_insert(1) -= 1;
            }
        }
        committed
    }

    /// Whether the event's transaction committed.
    #[must_use]
    pub(super) fn is_committed(&self, id: OutboxId) -> bool {
        self.committed.contains(&id)
    }

    /// Whether the event is on the to-do list.
    #[must_use]
    pub(super) fn is_pending(&self, id: OutboxId) -> bool {
        self.events.get(&id).is_some_and(|event| self.pending.contains(&(event.shard, id)))
    }

    /// Committed events in order of id.
    pub(super) fn committed(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.committed.iter().filter_map(|id| self.events.get(id))
    }

    fn arrival(&self, id: OutboxId) -> Option<Arrival> {
        let event = self.events.get(&id)?;
        let heads = self.deliveries.iter().filter(|((_, _), row)| {
            row.lane_id == event.lane_id && matches!(row.state, DeliveryState::Retry | DeliveryState::Held)
        });
        let mut blocked: Vec<Arc<str>> = heads.map(|((_, destination), _)| Arc::clone(destination)).collect();
        blocked.dedup();
        Some(Arrival { event: Arc::clone(event), blocked, due_in: Duration::ZERO, expires_in: None })
    }

    /// See `postbox_core::store::Store::scan`.
    #[must_use]
    pub(super) fn scan(&self, request: &ScanRequest) -> Scan {
        let honest = self.fault != Some(SeamFault::FloorPassesOpenTransactions);
        let undecided = self.open.values().flatten().min().copied().filter(|_| honest);
        let decided = undecided.map_or(self.last_id, |id| id - 1);
        let mut scan = Scan::default();
        for shard in &request.shards {
            let mut per_lane: BTreeMap<LaneId, u32> = BTreeMap::new();
            let (mut beyond, mut last, mut more) = (0, shard.cursor, false);
            for &(_, id) in self.pending.range((shard.shard, shard.floor + 1)..=(shard.shard, OutboxId::MAX))
            {
                let lane_id = self.events[&id].lane_id;
                let saturated = request.saturated.contains(&lane_id);
                if id <= shard.cursor {
                    if !saturated {
                        scan.rows.push(ScanRow { shard: shard.shard, id, lane_id, arrival: None });
                    }
                    continue;
                }
                if beyond == request.rows_per_shard {
                    more = true;
                    break;
                }
                beyond += 1;
                last = id;
                let nth = per_lane.entry(lane_id).or_insert(0);
                *nth += 1;
                let wide = !saturated && *nth <= request.rows_per_lane;
                let arrival = if wide { self.arrival(id) } else { None };
                scan.rows.push(ScanRow { shard: shard.shard, id, lane_id, arrival });
            }
            let floor = if more { decided.min(last) } else { decided };
            let floor = floor.max(shard.floor);
            scan.shards.push(ShardScanned { shard: shard.shard, cursor: last, floor, more });
        }
        scan
    }

    /// See `postbox_core::store::Store::load`.
    #[must_use]
    pub(super) fn load(&self, ids: &[(Shard, OutboxId)]) -> Vec<Arrival> {
        let mut ids: Vec<_> = ids.iter().filter(|key| self.pending.contains(key)).map(|key| key.1).collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.arrival(id)).collect()
    }

    /// See `postbox_core::store::Store::refill`.
    #[must_use]
    pub(super) fn refill(&self, request: &RefillRequest) -> Vec<Arrival> {
        let rows = self.pending.range((request.shard, 0)..=(request.shard, OutboxId::MAX)).map(|key| key.1);
        let wanted = rows.filter(|id| {
            let event = &self.events[id];
            event.lane_id == request.lane_id && event.aggregate_seq > request.after_seq
        });
        wanted.take(request.limit as usize).filter_map(|id| self.arrival(id)).collect()
    }

    /// See `postbox_core::store::Store::due`.
    #[must_use]
    pub(super) fn due(&self, request: &DueRequest) -> Vec<ParkedLane> {
        let mut found = Vec::new();
        for (destination, limit) in &request.destinations {
            let mut heads: Vec<(Duration, LaneId)> = self
                .deliveries
                .iter()
                .filter(|((_, d), row)| {
                    d == destination
                        && request.shards.contains(&row.shard)
                        && row.state == DeliveryState::Retry
                        && row.due_at <= self.now
                })
                .map(|(_, row)| (row.due_at, row.lane_id))
                .collect();
            heads.sort_unstable();
            for (_, lane_id) in heads.into_iter().take(*limit as usize) {
                let deliveries = self.lane(destination, lane_id).take(request.rows_per_lane as usize);
                let deliveries = deliveries.map(|(id, row)| ParkedDelivery {
                    event: Arc::clone(&self.events[&id]),
                    attempts: row.known_attempts(),
                    uncounted: row.uncounted,
                    state: row.state,
                    due_in: row.due_at.saturating_sub(self.now),
                    expires_in: None,
                    replay: row.replay,
                    maybe_delivered: row.maybe_delivered,
                });
                found.push(ParkedLane {
                    destination: Arc::clone(destination),
                    lane_id,
                    deliveries: deliveries.collect(),
                });
            }
        }
        found
    }

    /// Unfinished deliveries of a lane, in order.
    pub(super) fn lane<'a>(
        &'a self,
        destination: &'a Arc<str>,
        lane_id: LaneId,
    ) -> impl Iterator<Item = (OutboxId, &'a Row)> + 'a {
        self.deliveries
            .iter()
            .filter(move |((_, d), row)| {
                d == destination && row.lane_id == lane_id && row.state.is_unfinished()
            })
            .map(|((id, _), row)| (*id, row))
    }

    /// See `postbox_core::store::Store::settle`.
    pub(super) fn settle(&mut self, batch: &SettleBatch, relay: RelayId) -> SettleReport {
        let current = |term: &&Term| {
            let owner = &self.owners[usize::from(term.shard)];
            (owner.relay == Some(relay) && owner.epoch == term.epoch) || self.is_unfenced()
        };
        let refused: Vec<Term> = batch.terms.iter().filter(|term| !current(term)).copied().collect();
        let accepted: BTreeSet<Shard> = batch.terms.iter().filter(current).map(|term| term.shard).collect();
        for key in batch.dispatched.iter().filter(|key| accepted.contains(&key.0)) {
            self.pending.remove(key);
        }
        let mut touched = BTreeSet::new();
        for record in batch.records.iter().filter(|record| accepted.contains(&record.shard)) {
            let stored = self.upsert(record);
            if stored || record.state.is_unfinished() {
                touched.insert((Arc::clone(&record.destination), record.lane_id));
            }
        }
        for (destination, lane_id) in touched {
            self.promote(&destination, lane_id);
        }
        SettleReport { refused }
    }

    fn is_unfenced(&self) -> bool {
        matches!(self.fault, Some(SeamFault::NoFencing | SeamFault::EveryoneOwnsEverything))
    }

    /// Returns whether there was a row before.
    fn upsert(&mut self, record: &DeliveryRecord) -> bool {
        let key = (record.id, Arc::clone(&record.destination));
        let before = self.deliveries.get(&key);
        if before.is_some_and(|row| !row.state.is_unfinished()) {
            return true;
        }
        if let Some(begun) = before.and_then(|row| row.begun)
            && record.attempts < begun
            && !(record.withdrawn && record.attempts + 1 == begun)
        {
            return true;
        }
        let replay = before.is_some_and(|row| row.replay);
        let was_unknown = before
            .is_some_and(|row| row.maybe_delivered && (!record.withdrawn || record.attempts > row.attempts));
        let row = Row {
            lane_id: record.lane_id,
            shard: record.shard,
            state: record.state,
            attempts: record.attempts,
            due_at: self.now + record.retry_in.unwrap_or_default(),
            replay,
            maybe_delivered: record
                .failure
                .as_ref()
                .map_or(was_unknown, |failure| failure.class == "unknown"),
            uncounted: record.uncounted,
            begun: None,
            begun_at: before.map_or(Duration::ZERO, |row| row.begun_at),
        };
        self.deliveries.insert(key, row).is_some()
    }

    /// See `postbox_core::store::Store::begin`.
    pub(super) fn begin(&mut self, beginning: &Beginning, relay: RelayId) -> bool {
        let owner = &self.owners[usize::from(beginning.term.shard)];
        if owner.relay != Some(relay) || owner.epoch != beginning.term.epoch {
            return false;
        }
        let (now, attempt) = (self.now, beginning.attempt);
        let Some(row) = self.deliveries.get_mut(&(beginning.id, Arc::clone(&beginning.destination))) else {
            return false;
        };
        if row.state != DeliveryState::Retry
            || (row.known_attempts() >= attempt && row.begun != Some(attempt))
        {
            return false;
        }
        row.attempts = row.begun.filter(|&begun| begun < attempt).unwrap_or(row.attempts);
        row.begun = Some(attempt);
        row.begun_at = now;
        row.due_at = now + beginning.decide_in;
        row.maybe_delivered = true;
        true
    }

    /// A destination says that it has what this attempt brought.
    pub(super) fn resolve(&mut self, id: OutboxId, destination: &Arc<str>, attempt: u32) {
        let Some(row) = self.deliveries.get_mut(&(id, Arc::clone(destination))) else { return };
        if row.state.is_unfinished() && attempt <= row.known_attempts() {
            row.attempts = row.known_attempts();
            row.begun = None;
            row.state = DeliveryState::Delivered;
            let lane_id = row.lane_id;
            self.promote(destination, lane_id);
        }
    }

    /// Makes the first unfinished delivery of a lane its head.
    fn promote(&mut self, destination: &Arc<str>, lane_id: LaneId) {
        if self.fault == Some(SeamFault::NoNewHead) {
            return;
        }
        let ids: Vec<OutboxId> = self.lane(destination, lane_id).map(|(id, _)| id).collect();
        let now = self.now;
        for (n, id) in ids.into_iter().enumerate() {
            if let Some(row) = self.deliveries.get_mut(&(id, Arc::clone(destination))) {
                match (n, row.state) {
                    (0, DeliveryState::Waiting) => {
                        row.state = DeliveryState::Retry;
                        row.due_at = row.due_at.max(now);
                    }
                    (1.., DeliveryState::Retry | DeliveryState::Held) => row.state = DeliveryState::Waiting,
                    _ => {}
                }
            }
        }
    }

    /// What an operator's replay of one dead letter does.
    pub(super) fn replay(&mut self, id: OutboxId, destination: &Arc<str>) {
        if let Some(row) = self.deliveries.get_mut(&(id, Arc::clone(destination))) {
            row.state = DeliveryState::Waiting;
            row.attempts = 0;
            row.uncounted = 0;
            row.begun = None;
            row.due_at = Duration::ZERO;
            row.replay = true;
            let lane_id = row.lane_id;
            self.promote(destination, lane_id);
        }
    }

    /// See `postbox_core::store::Store::heartbeat`.
    pub(super) fn heartbeat(&mut self, heartbeat: &Heartbeat, joined: bool) -> LeaseAnswer {
        if joined && !self.relays.contains_key(&heartbeat.relay) {
            return LeaseAnswer::Evicted;
        }
        self.relays.insert(heartbeat.relay, self.now + heartbeat.ttl);
        let now = self.now;
        let evicted: Vec<RelayId> =
            self.relays.iter().filter(|(_, until)| **until <= now).map(|(relay, _)| *relay).collect();
        self.relays.retain(|_, until| *until > now);
        self.evicted.extend(evicted);
        let live = u32::try_from(self.relays.len()).unwrap_or(u32::MAX);
        for owner in &mut self.owners {
            if owner.relay.is_some_and(|relay| !self.relays.contains_key(&relay)) {
                owner.relay = None;
            }
        }
        if self.fault == Some(SeamFault::EveryoneOwnsEverything) {
            let terms = (0..SHARD_COUNT).map(|shard| Term { shard, epoch: 1 }).collect();
            return LeaseAnswer::Held { terms, live: 1 };
        }
        let mut terms = self.terms_of(heartbeat.relay);
        for shard in 0..SHARD_COUNT {
            let owner = &mut self.owners[usize::from(shard)];
            if heartbeat.accepting && owner.relay.is_none() && terms.len() < fair_share(live) {
                owner.relay = Some(heartbeat.relay);
                owner.epoch += 1;
                terms.push(Term { shard, epoch: owner.epoch });
            }
        }
        LeaseAnswer::Held { terms, live }
    }

    /// Relays that were evicted since this was last asked.
    pub(super) fn take_evicted(&mut self) -> Vec<RelayId> {
        std::mem::take(&mut self.evicted)
    }

    fn terms_of(&self, relay: RelayId) -> Vec<Term> {
        let owned = (0..SHARD_COUNT).zip(&self.owners).filter(|(_, owner)| owner.relay == Some(relay));
        owned.map(|(shard, owner)| Term { shard, epoch: owner.epoch }).collect()
    }

    /// See `postbox_core::store::Store::hand_back`.
    pub(super) fn hand_back(&mut self, relay: RelayId, terms: &[Term]) {
        for term in terms {
            let owner = &mut self.owners[usize::from(term.shard)];
            if owner.relay == Some(relay) && owner.epoch == term.epoch {
                owner.relay = None;
            }
        }
    }

    /// See `postbox_core::store::Store::leave`.
    pub(super) fn leave(&mut self, relay: RelayId) {
        let terms = self.terms_of(relay);
        self.hand_back(relay, &terms);
        self.relays.remove(&relay);
    }
}
