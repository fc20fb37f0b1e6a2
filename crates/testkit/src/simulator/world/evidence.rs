//! A destination that cannot recognise repeats: attempts are committed before they are made, and it may tell later what
//! it has.

use std::sync::Arc;
use std::time::Duration;

use postbox_core::delivery::DeliveryState;
use postbox_core::destination::{EvidencePolicy, WithoutEvidence};
use postbox_core::engine::Start;
use postbox_core::event::OutboxId;
use postbox_core::lease::RelayId;
use postbox_core::outcome::{FailureClass, Outcome};

use super::super::plan::SeamFault;
use super::{ATTEMPT_TIMEOUT, Call, Coming, PATIENCE, World};

/// How long evidence is waited for; longer than an attempt.
const EVIDENCE_WAIT: Duration = Duration::from_millis(400);

/// Time between two looks of the operator at what is held.
const TEND_EVERY: Duration = Duration::from_millis(500);

impl World {
    /// The last destination's policy, if it is such a destination.
    pub(super) fn evidence_of(&self, destination: usize) -> Option<EvidencePolicy> {
        let last = destination + 1 == self.plan.destinations;
        let without = self.plan.evidence.filter(|_| last)?;
        Some(EvidencePolicy { wait: EVIDENCE_WAIT, without })
    }

    pub(super) fn number_of(&self, start: &Start) -> usize {
        self.names.iter().position(|name| *name == start.name).unwrap_or_default()
    }

    /// Once the troubles are over, an operator has everything sent again that is held.
    pub(super) fn plan_tending(&mut self) {
        if self.plan.evidence == Some(WithoutEvidence::Hold) {
            let first = Duration::from_millis(self.plan.troubled_ms * 2);
            let last = first + PATIENCE;
            let mut at = first;
            while at < last {
                self.at(at, Coming::Tend);
                at += TEND_EVERY;
            }
        }
    }

    pub(super) fn tend(&mut self) {
        let is_held = |state| state == DeliveryState::Held;
        let held = self.store.deliveries.iter().filter(|(_, row)| is_held(row.state));
        let held: Vec<(OutboxId, Arc<str>)> = held.map(|(key, _)| key.clone()).collect();
        for (id, name) in held {
            if let Some(destination) = self.names.iter().position(|other| *other == name) {
                self.witness.replayed(destination, id);
                self.store.replay(id, &name);
            }
        }
    }

    /// The database is asked whether an attempt may be made.
    pub(super) fn commit_beginning(&mut self, start: &Start, relay: RelayId) -> bool {
        let Some(beginning) = &start.beginning else { return true };
        let granted = self.store.begin(beginning, relay);
        if granted {
            let destination = self.number_of(start);
            self.witness.begun(destination, beginning.id, beginning.attempt);
        }
        granted || self.plan.seam_fault == Some(SeamFault::IgnoreRefusedBegin)
    }

    /// Whether a relay that asked sends now; `None` when it has given the attempt up meanwhile.
    pub(super) fn may_send(
        &self,
        relay: usize,
        start: &Start,
        decided: Duration,
        granted: bool,
    ) -> Option<bool> {
        self.flying.get(&(relay, start.id))?;
        Some(granted && self.now < decided + ATTEMPT_TIMEOUT)
    }

    /// A request goes out: at such a destination only after that was committed.
    pub(super) fn check_begun(
        &mut self,
        destination: usize,
        id: OutboxId,
        number: u32,
    ) -> Result<(), String> {
        if self.evidence_of(destination).is_some() && !self.witness.was_begun(destination, id, number) {
            return Err(self.blame(&format!(
                "event {id} was sent to destination {destination} without recording attempt {number} before"
            )));
        }
        Ok(())
    }

    /// Nothing is decided of an unknown attempt before the wait for evidence is over.
    pub(super) fn check_evidence(&self, call: &Call) -> Result<(), String> {
        let early = |destination: &Arc<str>, id: OutboxId| {
            let row = self.store.deliveries.get(&(id, Arc::clone(destination)));
            row.is_some_and(|row| {
                row.state.is_unfinished()
                    && row.maybe_delivered
                    && row.known_attempts() > 0
                    && self.now < row.begun_at + EVIDENCE_WAIT
            })
        };
        match call {
            Call::Begin(start, ..) => {
                let Some(beginning) = &start.beginning else { return Ok(()) };
                let row = self.store.deliveries.get(&(beginning.id, Arc::clone(&beginning.destination)));
                let again = row.is_some_and(|row| row.known_attempts() >= beginning.attempt);
                if !again && early(&beginning.destination, beginning.id) {
                    return Err(self.blame(&format!("event {} is sent again too early", beginning.id)));
                }
            }
            Call::Settle(batch, _) => {
                let unknown = FailureClass::Unknown.as_str();
                let held = batch.records.iter().filter(|record| {
                    record.state == DeliveryState::Held
                        && record.failure.as_ref().is_some_and(|failure| failure.class == unknown)
                });
                for record in held {
                    if early(&record.destination, record.id) {
                        return Err(self.blame(&format!("event {} is held too early", record.id)));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What an attempt brings to such a destination; it may tell of it.
    pub(super) fn arrives(
        &mut self,
        destination: usize,
        (event, number): (OutboxId, u32),
        outcome: &Outcome,
    ) -> Result<(), String> {
        let Some(policy) = self.evidence_of(destination) else { return Ok(()) };
        let arrived = match outcome {
            Outcome::Delivered(_) => true,
            Outcome::Failed(failure) => failure.class == FailureClass::Unknown && self.random.chance(500),
            Outcome::NotStarted(_) => false,
        };
        if !arrived {
            return Ok(());
        }
        self.witness.received(destination, event);
        let is_new = self.witness.message(destination, event);
        if !is_new && policy.without == WithoutEvidence::Hold {
            return Err(
                self.blame(&format!("event {event} arrived twice at destination {destination}, which holds"))
            );
        }
        if self.random.chance(self.plan.told) {
            let after = EVIDENCE_WAIT.mul_f64(self.random.between(0, 2_000) as f64 / 1_000.0);
            self.at(self.now + after, Coming::Told { destination, event, number });
        }
        Ok(())
    }

    pub(super) fn told(&mut self, destination: usize, event: OutboxId, number: u32) {
        let name = Arc::clone(&self.names[destination]);
        self.store.resolve(event, &name, number);
    }
}
