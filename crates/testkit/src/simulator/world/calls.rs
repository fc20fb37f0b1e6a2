//! Calls of the relays to the database: done, failed before, or done with the answer lost.

use std::time::Duration;

use postbox_core::engine::Read;
use postbox_core::store::SettleReport;

use super::super::checks::Witness;
use super::super::plan::SeamFault;
use super::super::relay::{Call, Happening};
use super::{Coming, World};

impl World {
    pub(super) fn call(
        &mut self,
        relay: usize,
        life: u64,
        call: Call,
        asked: Duration,
    ) -> Result<(), String> {
        let troubled = self.troubled();
        let away = self.now < self.away_until;
        if away || (troubled && self.random.chance(self.plan.call_fails)) {
            let mut happening = Self::failure(call);
            if self.plan.seam_fault == Some(SeamFault::LostSettleIsDone)
                && matches!(happening, Happening::SettleFailed(..))
            {
                happening = Happening::Settled(SettleReport::default());
            }
            self.soon(5_000, Coming::To { relay, life, happening });
            return Ok(());
        }
        self.check_evidence(&call)?;
        let failure = Self::failure(call.clone());
        let settles = matches!(call, Call::Settle(..));
        let answer = self.perform(call, asked);
        if settles {
            let honest = self.witness.attempts_are_honest(&self.store, &self.names);
            honest
                .and_then(|()| Witness::heads_are_first(&self.store))
                .map_err(|broken| self.blame(&broken))?;
        }
        let lost = troubled && self.random.chance(self.plan.answer_lost);
        let happening = match failure {
            Happening::SettleFailed(..)
                if lost && self.plan.seam_fault == Some(SeamFault::LostSettleIsDone) =>
            {
                Happening::Settled(SettleReport::default())
            }
            failure if lost => failure,
            _ => answer,
        };
        self.soon(5_000, Coming::To { relay, life, happening });
        Ok(())
    }

    fn perform(&mut self, call: Call, asked: Duration) -> Happening {
        match call {
            Call::Read(Read::Scan(request)) => Happening::Scanned(self.store.scan(&request)),
            Call::Read(Read::Refill(request)) => {
                let rows = self.store.refill(&request);
                Happening::Refilled(request, rows)
            }
            Call::Read(Read::Due(request)) => {
                let lanes = self.store.due(&request);
                Happening::Due(request, lanes)
            }
            Call::Load(scan, ids) => {
                let rows = self.store.load(&ids);
                Happening::Loaded(scan, rows)
            }
            Call::Begin(start, id, decided) => {
                let granted = self.commit_beginning(&start, id);
                Happening::Begun(start, decided, granted)
            }
            Call::Settle(batch, id) => Happening::Settled(self.store.settle(&batch, id)),
            Call::Beat(heartbeat, joined) => {
                let answer = self.store.heartbeat(&heartbeat, joined);
                for evicted in self.store.take_evicted() {
                    self.excuse_evicted(evicted);
                }
                Happening::Lease(answer, asked)
            }
            Call::HandBack(id, terms) => {
                self.store.hand_back(id, &terms);
                Happening::LeaseDone
            }
            Call::Leave(id) => {
                self.store.leave(id);
                Happening::LeaseDone
            }
        }
    }

    fn failure(call: Call) -> Happening {
        match call {
            Call::Read(_) | Call::Load(..) => Happening::ReadFailed,
            Call::Begin(start, _, decided) => Happening::Begun(start, decided, false),
            Call::Settle(batch, id) => Happening::SettleFailed(batch, id),
            Call::Beat(..) | Call::HandBack(..) | Call::Leave(_) => Happening::LeaseDone,
        }
    }
}
