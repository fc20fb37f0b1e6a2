//! Reading: what to ask the store for, and taking in what it answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::dispatch::Disposition;
use super::lane::LaneKey;
use super::window::{HeldDelivery, HeldEvent};
use super::{Answer, Engine, Moment, Read, Unrouted, planted};
use crate::delivery::{DeliveryRecord, DeliveryState, NO_DESTINATION, ParkedLane};
use crate::event::{Event, LaneId, OutboxId, Shard};
use crate::store::{Arrival, DueRequest, RefillRequest, Scan, ScanRequest};

/// Parked deliveries of one lane that are read back at once.
const PARKED_ROWS_PER_LANE: u32 = 32;

impl Engine {
    /// What to read now. At most one read is outstanding: answer it by [`Engine::read_done`] or
    /// [`Engine::read_failed`].
    pub fn next_read(&mut self, now: Moment) -> Option<Read> {
        if self.feed.is_reading() || self.feed.shards().is_empty() {
            return None;
        }
        let low = self.limits.rows_per_lane as usize / 4;
        if let Some((lane_id, aggregate)) = self.window.to_refill(low) {
            let sample = &aggregate.sample;
            let request = RefillRequest {
                lane_id,
                shard: sample.shard,
                aggregate_type: sample.aggregate_type.clone(),
                aggregate_id: sample.aggregate_id.clone(),
                after_seq: aggregate.last_seq,
                limit: self.limits.rows_per_lane,
            };
            return Some(self.feed.begin(Read::Refill(request)));
        }
        let room = self.room();
        if room == 0 {
            self.spill(now);
            return None;
        }
        self.spilling.has_room();
        let (scan_at, due_at) = (self.feed.scan_pace.next_at(), self.feed.due_pace.next_at());
        if due_at <= now && due_at <= scan_at {
            if let Some(request) = self.due_request(now, room) {
                return Some(self.feed.begin(Read::Due(request)));
            }
            self.feed.looked_due(now, false, self.limits.poll_interval);
        }
        if scan_at > now {
            return None;
        }
        let shards = self.feed.scans();
        let per_shard = (room / shards.len()).clamp(8, 1_024);
        let request = ScanRequest {
            shards,
            rows_per_shard: u32::try_from(per_shard).unwrap_or(u32::MAX),
            rows_per_lane: self.limits.rows_per_lane,
            saturated: self.window.saturated(),
        };
        Some(self.feed.begin(Read::Scan(request)))
    }

    /// Events that may be read now: none until a quarter of the window is free, so that reads stay worth their cost.
    pub(super) fn room(&self) -> usize {
        let free = self.limits.max_events.saturating_sub(self.window.len());
        if free * 4 >= self.limits.max_events { free } else { 0 }
    }

    /// Lanes in memory may be due in the database too, so they are asked for on top of those that there is room for.
    fn due_request(&mut self, now: Moment, room: usize) -> Option<DueRequest> {
        let asked = self.destinations.next_look(now);
        if asked.is_empty() {
            return None;
        }
        let mut known = vec![0_usize; self.destinations.len()];
        for key in self.lanes.keys() {
            known[key.destination] += 1;
        }
        let share = (room / asked.len()).max(1);
        let news = |number: usize| (2 * self.destinations[number].spec.concurrency).min(share);
        let lanes: usize = asked.iter().map(|&number| news(number)).sum();
        let limit = |&number: &usize| {
            let name = self.destinations[number].spec.name.clone();
            (name, u32::try_from(known[number] + news(number)).unwrap_or(u32::MAX))
        };
        Some(DueRequest {
            shards: self.feed.shards(),
            destinations: asked.iter().map(limit).collect(),
            rows_per_lane: u32::try_from(room / lanes).unwrap_or(u32::MAX).clamp(1, PARKED_ROWS_PER_LANE),
        })
    }

    /// Rows of a scan that are news but came without their event: load them and hand them to [`Engine::read_done`].
    #[must_use]
    pub fn unknown(&self, scan: &Scan) -> Vec<(Shard, OutboxId)> {
        let news = scan.rows.iter().filter(|row| {
            row.arrival.is_none()
                && self.feed.is_current(row.shard)
                && row.id <= self.feed.cursor(row.shard)
                && !self.window.knows(row.id)
                && !planted!(self, DropLateCommits)
                && !self.window.is_saturated(row.lane_id)
        });
        news.map(|row| (row.shard, row.id)).collect()
    }

    /// There may be something new on the to-do list: it is looked at without waiting for the next poll.
    pub fn heard_news(&mut self, now: Moment) {
        self.feed.heard_news(now);
    }

    /// The outstanding read was answered.
    pub fn read_done(&mut self, now: Moment, answer: Answer) {
        match answer {
            Answer::Scan(scan, loaded) => self.scan_done(now, scan, loaded),
            Answer::Refill(request, arrivals) => {
                if self.feed.is_current(request.shard) {
                    if arrivals.len() < request.limit as usize {
                        self.window.desaturate(request.lane_id);
                    }
                    self.arrive(now, arrivals);
                }
            }
            Answer::Due(request, lanes) => {
                let mut found = false;
                for lane in lanes {
                    let cut_short = lane.deliveries.len() >= request.rows_per_lane as usize;
                    found |= self.bring_back(now, lane, cut_short);
                }
                self.feed.looked_due(now, found, self.limits.poll_interval);
                if found {
                    self.feed.stirred();
                }
            }
        }
        self.end_read(now);
    }

    /// The outstanding read failed; nothing is read before `pause` has passed.
    pub fn read_failed(&mut self, now: Moment, pause: Duration) {
        self.feed.failed(now, pause);
        self.end_read(now);
    }

    fn end_read(&mut self, now: Moment) {
        self.feed.end(now);
        for trail in std::mem::take(&mut self.fading) {
            self.window.lay(&trail);
        }
        for key in std::mem::take(&mut self.retiring) {
            self.leave_lane(key);
        }
    }

    fn scan_done(&mut self, now: Moment, scan: Scan, mut loaded: Vec<Arrival>) {
        let mut beyond: HashMap<LaneId, Option<Arc<Event>>> = HashMap::new();
        let mut arrivals = Vec::with_capacity(scan.rows.len());
        let (progress, rows) = (Scan { rows: Vec::new(), shards: scan.shards }, scan.rows);
        for row in rows {
            if !self.feed.is_current(row.shard) {
                continue;
            }
            match row.arrival {
                Some(arrival) => arrivals.push(arrival),
                None if row.id > self.feed.cursor(row.shard) => {
                    beyond.entry(row.lane_id).or_default();
                }
                None => {}
            }
        }
        for arrival in &arrivals {
            if let Some(last) = beyond.get_mut(&arrival.event.lane_id)
                && !planted!(self, ForgetSaturated)
            {
                *last = Some(Arc::clone(&arrival.event));
            }
        }
        let found = !loaded.is_empty() || arrivals.iter().any(|a| !self.window.knows(a.event.id));
        // Events that committed late have lower ids than those of the same aggregate behind them.
        arrivals.append(&mut loaded);
        arrivals.sort_by_key(|arrival| arrival.event.id);
        self.arrive(now, arrivals);
        for (lane_id, last) in beyond {
            self.window.saturate(lane_id, last.as_ref());
        }
        self.feed.scanned(now, &progress, found, self.limits.poll_interval);
    }

    /// Takes in events of the to-do list, in order of id.
    fn arrive(&mut self, now: Moment, arrivals: Vec<Arrival>) {
        for arrival in arrivals {
            if self.feed.is_scanning(arrival.event.shard) && !self.window.knows(arrival.event.id) {
                self.feed.stirred();
                self.take_in(now, arrival);
            }
        }
    }

    fn take_in(&mut self, now: Moment, arrival: Arrival) {
        let Arrival { event, blocked, due_in, expires_in } = arrival;
        let routed = self.destinations.routed(&event);
        if routed.is_empty() {
            self.record_unrouted(now, &event);
            return;
        }
        let careful = routed.iter().any(|&number| self.destinations[number].spec.evidence.is_some());
        let delivery = |&destination: &usize| HeldDelivery {
            destination,
            lane_id: self.destinations[destination].lane_of(&event),
            attempts: 0,
            uncounted: 0,
            replay: false,
            maybe_delivered: false,
            ready_at: now + due_in,
            done: None,
            stored_in: 0,
        };
        let deliveries = routed.iter().map(delivery).collect();
        let expires_at = expires_in.map(|left| now + left);
        self.window.insert_todo(HeldEvent {
            event: Arc::clone(&event),
            expires_at,
            on_todo: true,
            deliveries,
        });
        for destination in routed {
            let slot = &self.destinations[destination];
            let key = LaneKey { destination, lane_id: slot.lane_of(&event) };
            let parked_ahead = key.lane_id == event.lane_id
                && blocked.contains(&slot.spec.name)
                && !planted!(self, IgnoreParkedHead);
            // An attempt is begun in the row of its delivery, so there must be one.
            let needs_row = slot.spec.evidence.is_some();
            let known = self.lanes.contains_key(&key);
            let lane = self.lane_mut(key, event.shard);
            // What is in memory is newer than what the read saw.
            lane.closed |= needs_row || (!known && parked_ahead);
            if lane.closed {
                self.dispose(now, key, event.id, Disposition::plain(DeliveryState::Waiting));
                self.leave_lane(key);
            } else {
                lane.insert(event.id);
                self.destinations[destination].queued += 1;
                self.make_ready(key);
            }
        }
        if careful {
            self.due_after_settle = true;
            self.dispatch(now, event.id);
        }
    }

    fn record_unrouted(&mut self, now: Moment, event: &Arc<Event>) {
        self.settling.dispatch(now, event.shard, event.id);
        self.window.leave_todo(event.id);
        if self.unrouted == Unrouted::Skip {
            self.counters.skipped += 1;
            return;
        }
        self.counters.unrouted += 1;
        let record = DeliveryRecord {
            id: event.id,
            lane_id: event.lane_id,
            shard: event.shard,
            destination: NO_DESTINATION.into(),
            state: DeliveryState::Unrouted,
            attempts: 0,
            uncounted: 0,
            withdrawn: false,
            retry_in: None,
            status: None,
            external_id: None,
            failure: None,
        };
        self.settling.record(now, record, None);
    }

    /// Takes in the front of a lane that is due. Returns whether it was news.
    fn bring_back(&mut self, now: Moment, parked: ParkedLane, cut_short: bool) -> bool {
        let Some(destination) = self.destinations.named(&parked.destination) else { return false };
        let Some(head) = parked.deliveries.first() else { return false };
        let shard = head.event.shard;
        if !self.feed.is_current(shard) || head.state == DeliveryState::Held || head.due_in > Duration::ZERO {
            return false;
        }
        // A read that is older than one of our records says nothing about what may follow it.
        let stale = parked.deliveries.iter().any(|d| self.window.is_haunted(destination, d.event.id));
        if stale && !planted!(self, BelieveStaleReads) {
            return false;
        }
        let key = LaneKey { destination, lane_id: parked.lane_id };
        // The next one's attempt may begin only when this one's outcome is recorded: it comes with the read after that.
        let careful = self.destinations[destination].spec.evidence.is_some();
        let (cut_short, at_once) = if careful { (true, 1) } else { (cut_short, usize::MAX) };
        let mut found = false;
        for delivery in parked.deliveries.into_iter().take(at_once) {
            if delivery.state == DeliveryState::Held {
                break;
            }
            let id = delivery.event.id;
            if self.window.holds_delivery(destination, id) {
                continue;
            }
            found = true;
            let known = self.lanes.contains_key(&key);
            let lane = self.lane_mut(key, shard);
            lane.closed |= !known || cut_short;
            lane.insert(id);
            self.destinations[destination].queued += 1;
            let held = HeldDelivery {
                destination,
                lane_id: parked.lane_id,
                attempts: delivery.attempts,
                uncounted: delivery.uncounted,
                replay: delivery.replay,
                maybe_delivered: delivery.maybe_delivered,
                ready_at: now + delivery.due_in,
                done: None,
                stored_in: 0,
            };
            self.window.insert_parked(&delivery.event, delivery.expires_in.map(|left| now + left), held);
        }
        self.destinations.enliven(destination);
        if found {
            self.make_ready(key);
        }
        found
    }
}
