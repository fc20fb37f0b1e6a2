//! Which attempt starts next.

use std::sync::Arc;
use std::time::Duration;

use super::breaker::Passage;
use super::dispatch::Disposition;
use super::lane::LaneKey;
use super::{AttemptId, Engine, InFlight, Moment, Start, planted};
use crate::delivery::{AttemptFailure, DeliveryState};
use crate::destination::WithoutEvidence;
use crate::lease::Term;
use crate::outcome::FailureClass;
use crate::retry::Decision;
use crate::sink::Attempt;
use crate::store::Beginning;

/// Lanes drawn at random to find one for a probe.
const PROBE_DRAWS: usize = 8;

/// What to do with the head of a lane that could start.
enum Verdict {
    Start,
    /// It waits for its own time; costs no attempt.
    NotYet(Duration),
    Expired,
    /// Nobody knows what became of the last attempt, and no evidence came in time: this is what is to be done.
    Undecided(Decision),
    /// Not now: the bytes in flight are used up.
    NoRoom,
}

impl Engine {
    /// The next attempt to start, if one may. Call until `None`.
    pub fn next_start(&mut self, now: Moment) -> Option<Start> {
        self.destinations.ring_alarms(now);
        while self.attempts.len() < self.limits.max_in_flight {
            let destination = self.destinations.next_turn()?;
            if let Some(start) = self.start_for(now, destination) {
                self.destinations.take_turn(destination);
                return Some(start);
            }
        }
        None
    }

    fn start_for(&mut self, now: Moment, destination: usize) -> Option<Start> {
        loop {
            let slot = &self.destinations[destination];
            // An attempt that could outlive the lease could overlap with the next owner's.
            if slot.in_flight >= slot.spec.concurrency
                || (now + slot.spec.timeout > self.lease_until && !planted!(self, IgnoreLease))
            {
                return None;
            }
            match slot.gate.passage(now, slot.in_flight, self.shards.len()) {
                Passage::Open => {}
                Passage::Later(at) => {
                    self.destinations.set_alarm(destination, at);
                    return None;
                }
                Passage::Shut => return None,
            }
            if slot.gate.is_probing() {
                self.choose_probe(destination);
            }
            let slot = &mut self.destinations[destination];
            let key = slot.ready.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            lane.ready = false;
            let Some(&id) = lane.queue.front() else { continue };
            if lane.in_flight.is_some() && !planted!(self, TwoInFlight) {
                continue;
            }
            match self.verdict(now, key, id) {
                Verdict::Start => return self.start(now, key, id),
                Verdict::NoRoom => {
                    self.unready(key);
                    self.destinations.starve(destination);
                    return None;
                }
                Verdict::NotYet(wait) => {
                    self.take_head(key);
                    self.dispose(now, key, id, Disposition::retry_in(wait));
                    self.close_lane(now, key);
                    self.leave_lane(key);
                }
                Verdict::Undecided(decision) => {
                    self.take_head(key);
                    let disposition = self.without_evidence(&decision);
                    let blocks = disposition.state.is_unfinished();
                    self.dispose(now, key, id, disposition);
                    if blocks {
                        self.close_lane(now, key);
                        self.leave_lane(key);
                    } else {
                        self.advance(key);
                    }
                }
                Verdict::Expired => {
                    self.take_head(key);
                    self.counters.expired += 1;
                    self.dispose(now, key, id, Disposition::plain(DeliveryState::Expired));
                    self.advance(key);
                }
            }
        }
    }

    /// Puts a lane in front whose head has not failed before, if a few drawn at random hold one. At random, since the
    /// first in line may all be of those that fail.
    fn choose_probe(&mut self, destination: usize) {
        for _ in 0..PROBE_DRAWS {
            let dice = self.roll();
            let ready = &mut self.destinations[destination].ready;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "below the length of the queue, and not negative"
            )]
            let drawn = (dice * ready.len() as f64) as usize;
            if drawn >= ready.len() {
                return;
            }
            ready.swap(0, drawn);
            let key = ready[0];
            let head = self.lanes.get(&key).and_then(|lane| lane.queue.front());
            let delivery = head.and_then(|&id| self.window.get(id)?.delivery(key.destination));
            if delivery.is_some_and(|delivery| delivery.attempts == 0) {
                return;
            }
        }
    }

    fn verdict(&self, now: Moment, key: LaneKey, id: crate::event::OutboxId) -> Verdict {
        let Some(held) = self.window.get(id) else { return Verdict::Expired };
        if held.expires_at.is_some_and(|at| at <= now) {
            return Verdict::Expired;
        }
        let slot = &self.destinations[key.destination];
        if let Some(delivery) = held.delivery(key.destination) {
            let ready_at = delivery.ready_at.max(slot.lane_pacers.ready_at(now, key.lane_id));
            if ready_at > now {
                return Verdict::NotYet(ready_at - now);
            }
            if let Some(evidence) = slot.spec.evidence
                && delivery.maybe_delivered
                && delivery.attempts > 0
                && !planted!(self, ResendUndecided)
            {
                if evidence.without == WithoutEvidence::Hold {
                    return Verdict::Undecided(Decision::Hold);
                }
                if delivery.tries().counted() >= slot.spec.retry.attempts {
                    return Verdict::Undecided(slot.spec.retry.exhausted());
                }
            }
        }
        let bytes = held.event.payload.len();
        if self.in_flight_bytes > 0 && self.in_flight_bytes + bytes > self.limits.max_in_flight_bytes {
            return Verdict::NoRoom;
        }
        Verdict::Start
    }

    fn start(&mut self, now: Moment, key: LaneKey, id: crate::event::OutboxId) -> Option<Start> {
        let held = self.window.get(id)?;
        let delivery = held.delivery(key.destination)?;
        let slot = &mut self.destinations[key.destination];
        let attempt = Attempt {
            event: Arc::clone(&held.event),
            number: delivery.attempts + 1,
            replay: delivery.replay,
            maybe_delivered: delivery.maybe_delivered,
            timeout: slot.spec.timeout,
        };
        let (number, name) = (attempt.number, slot.spec.name.clone());
        let shard = held.event.shard;
        let beginning = match slot.spec.evidence.filter(|_| !planted!(self, BeginNothing)) {
            Some(evidence) => Some(Beginning {
                id,
                destination: name.clone(),
                term: Term { shard, epoch: self.shards.get(&shard)?.epoch },
                attempt: number,
                decide_in: evidence.wait.max(slot.spec.timeout),
            }),
            None => None,
        };
        self.last_attempt += 1;
        let id_of_attempt = AttemptId(self.last_attempt);
        let bytes = held.event.payload.len();
        slot.in_flight += 1;
        slot.queued -= 1;
        slot.gate.started(now, id_of_attempt, number == 1, self.shards.len());
        slot.lane_pacers.started(now, key.lane_id);
        self.in_flight_bytes += bytes;
        self.attempts.insert(id_of_attempt, InFlight { key, id, bytes, begun: beginning.is_some() });
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.in_flight = Some(id_of_attempt);
        }
        self.counters.started += 1;
        if planted!(self, TwoInFlight) && number == 1 {
            self.make_ready(key);
        }
        Some(Start { id: id_of_attempt, destination: key.destination, name, attempt, beginning })
    }

    /// What becomes of a delivery whose last attempt nobody knows the outcome of.
    fn without_evidence(&mut self, decision: &Decision) -> Disposition {
        let (state, reason) = match decision {
            Decision::DeadLetter => {
                self.counters.dead += 1;
                (DeliveryState::Dead, "no evidence came that it arrived, and no attempts are left")
            }
            Decision::Hold | Decision::RetryIn(_) => {
                self.counters.held += 1;
                (
                    DeliveryState::Held,
                    "no evidence came that it arrived: replay it to send it again, or discard it",
                )
            }
        };
        let failure = AttemptFailure {
            class: FailureClass::Unknown.as_str(),
            reason: reason.to_owned(),
            answer: None,
            took: Duration::ZERO,
        };
        Disposition { failure: Some(failure), ..Disposition::plain(state) }
    }

    /// Removes the head of a lane that has nothing in flight.
    fn take_head(&mut self, key: LaneKey) {
        if let Some(lane) = self.lanes.get_mut(&key)
            && lane.queue.pop_front().is_some()
        {
            self.destinations[key.destination].queued -= 1;
        }
    }

    /// Puts a lane into its destination's queue of lanes that can start, unless it stands there.
    pub(super) fn make_ready(&mut self, key: LaneKey) {
        if let Some(lane) = self.lanes.get_mut(&key)
            && (lane.in_flight.is_none() || planted!(self, TwoInFlight))
            && !lane.ready
            && !lane.queue.is_empty()
        {
            lane.ready = true;
            self.destinations[key.destination].ready.push_back(key);
            self.destinations.take_turn(key.destination);
        }
    }

    fn unready(&mut self, key: LaneKey) {
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.ready = true;
            self.destinations[key.destination].ready.push_front(key);
        }
    }

    /// The head of a lane came to its end: the next one can start, or the lane is left.
    pub(super) fn advance(&mut self, key: LaneKey) {
        self.make_ready(key);
        self.leave_lane(key);
        // Behind the last delivery that was read of a closed lane there may be more.
        if self.lanes.get(&key).is_some_and(|lane| lane.closed && lane.queue.is_empty()) {
            self.due_after_settle = true;
        }
    }
}
