//! Attempts on their way to a destination, and what comes back.

use std::time::Duration;

use postbox_core::engine::{AttemptId, Start};
use postbox_core::event::OutboxId;
use postbox_core::outcome::{Confirmation, Failure, FailureClass, Outcome, Scope};

use super::super::plan::SeamFault;
use super::{ATTEMPT_TIMEOUT, Call, Coming, Happening, World};

impl World {
    pub(super) fn start(&mut self, relay: usize, life: u64, start: Start) -> Result<(), String> {
        let event = &start.attempt.event;
        let destination = self.number_of(&start);
        if self.relays[relay].1.as_ref().is_some_and(|process| !process.may_send_to(&start.name)) {
            return Err(
                self.blame(&format!("event {} was sent to a disabled destination {destination}", event.id))
            );
        }
        if self.troubled() && self.random.chance(self.plan.not_started) {
            self.flying.insert((relay, start.id), (destination, event.id));
            let happening = Happening::Ended(start.id, Outcome::NotStarted("simulated".into()));
            self.soon(500, Coming::To { relay, life, happening });
            return Ok(());
        }
        if start.beginning.is_some() {
            self.flying.insert((relay, start.id), (destination, event.id));
            let id = self.relays[relay].1.as_ref().map(|process| process.id).unwrap_or_default();
            let call = Call::Begin(Box::new(start), id, self.now);
            self.soon(2_000, Coming::Call { relay, life, call, asked: Duration::ZERO });
            return Ok(());
        }
        self.send(relay, life, &start)
    }

    /// The request of an attempt goes out.
    pub(super) fn send(&mut self, relay: usize, life: u64, start: &Start) -> Result<(), String> {
        let (event, number) = (&start.attempt.event, start.attempt.number);
        let destination = self.number_of(start);
        self.check_begun(destination, event.id, number)?;
        let ordering = self.ordering(destination);
        let begun = self.witness.starts(&self.store, &self.names, (destination, ordering), event);
        begun.map_err(|broken| self.blame(&format!("relay {relay}: {broken}")))?;
        self.flying.insert((relay, start.id), (destination, event.id));
        if self.plan.seam_fault == Some(SeamFault::SettleBeforeConfirm) {
            let outcome = Outcome::Delivered(Confirmation::default());
            self.at(self.now, Coming::To { relay, life, happening: Happening::Ended(start.id, outcome) });
        }
        let coming = Coming::Attempt { relay, life, id: start.id, destination, event: event.id, number };
        self.soon(20_000, coming);
        Ok(())
    }

    pub(super) fn receive(
        &mut self,
        (relay, life): (usize, u64),
        id: AttemptId,
        destination: usize,
        (event, number): (OutboxId, u32),
    ) -> Result<(), String> {
        let troubled = self.troubled();
        let dead = troubled && self.plan.first_destination_dead && destination == 0;
        let failed = |class| Outcome::Failed(Failure::new(class, "simulated"));
        let outcome = if self.poisoned.contains(&event) {
            failed(FailureClass::Permanent)
        } else if dead || (troubled && self.random.chance(self.plan.attempt_fails)) {
            failed(FailureClass::Transient)
        } else if troubled && self.random.chance(self.plan.throttled) {
            let scopes = [Scope::Lane, Scope::Destination, Scope::Account];
            let scope = scopes[self.random.index(scopes.len())];
            let throttled = Failure::new(FailureClass::Throttled, "simulated");
            Outcome::Failed(Failure { scope, ..throttled })
        } else if troubled && self.random.chance(self.plan.gone) {
            failed(FailureClass::Gone)
        } else if troubled && self.random.chance(self.plan.attempt_unknown) {
            failed(FailureClass::Unknown)
        } else {
            Outcome::Delivered(Confirmation::default())
        };
        let fault = self.plan.seam_fault;
        if matches!(outcome, Outcome::Delivered(_)) {
            self.witness.received(destination, event);
        }
        self.arrives(destination, (event, number), &outcome)?;
        let outcome = match outcome {
            Outcome::Failed(failure)
                if failure.class == FailureClass::Unknown && fault == Some(SeamFault::UnknownIsDelivered) =>
            {
                Outcome::Delivered(Confirmation::default())
            }
            outcome => outcome,
        };
        let coming = Coming::To { relay, life, happening: Happening::Ended(id, outcome) };
        if destination == 0 && self.plan.first_destination_slow {
            self.at(self.now + ATTEMPT_TIMEOUT.mul_f64(0.8), coming);
        } else {
            self.soon(20_000, coming);
        }
        Ok(())
    }
}
