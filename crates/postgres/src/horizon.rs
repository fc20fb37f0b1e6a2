//! How far down every id is decided, so that scans may leave it out.
//!
//! A producer has its transaction id before it draws an event's id. So when the id sequence stood at `last_id` and a
//! transaction id `mark` was drawn after looking, every event up to `last_id` belongs to a transaction older than
//! `mark`; once the oldest running transaction is not older than `mark`, all of them are committed or rolled back, and
//! any snapshot taken after that shows the committed ones.

use std::time::{Duration, Instant};

use postbox_core::event::OutboxId;

/// A mark costs a transaction id, of which there are two thousand million; so not with every poll of a busy relay.
const MARK_EVERY: Duration = Duration::from_millis(50);

/// What one store knows of the id sequence.
#[derive(Debug, Default)]
pub(crate) struct Horizon {
    /// Every id up to here is decided.
    decided: OutboxId,
    /// Where the sequence stood at the last look.
    last_id: Option<OutboxId>,
    candidate: Option<Candidate>,
    marked_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    last_id: OutboxId,
    mark: i64,
}

/// What the database answered to a look at the horizon.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) oldest_running: i64,
    pub(crate) last_id: OutboxId,
    pub(crate) mark: Option<i64>,
}

impl Horizon {
    /// The id beyond which the next look shall set a mark; `None` while one is waiting to be reached.
    pub(crate) fn mark_beyond(&self, now: Instant) -> Option<OutboxId> {
        let recently = self.marked_at.is_some_and(|at| now.duration_since(at) < MARK_EVERY);
        (self.candidate.is_none() && !recently).then_some(self.decided)
    }

    /// Takes in a look and answers up to which id everything was decided when it was made.
    pub(crate) fn see(&mut self, look: Look, now: Instant) -> OutboxId {
        if look.last_id < self.decided {
            // Another history: a restored backup, or a standby that had not received everything.
            *self = Self::default();
        }
        self.last_id = Some(look.last_id);
        if let Some(Candidate { last_id, .. }) = self.candidate.filter(|c| look.oldest_running >= c.mark) {
            self.decided = last_id;
            self.candidate = None;
        }
        if let Some(mark) = look.mark {
            self.candidate = Some(Candidate { last_id: look.last_id, mark });
            self.marked_at = Some(now);
        }
        self.decided
    }

    /// Where to scan from when the caller would from `floor`: a floor beyond the sequence belongs to another history, in
    /// which its ids are yet to be drawn.
    pub(crate) fn trusted(&self, floor: OutboxId) -> OutboxId {
        if self.last_id.is_some_and(|last_id| last_id < floor) { 0 } else { floor }
    }

    /// Forgets everything: what answers next may be another server with another history.
    pub(crate) fn connection_lost(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(oldest_running: i64, last_id: OutboxId, mark: Option<i64>) -> Look {
        Look { oldest_running, last_id, mark }
    }

    #[test]
    fn ids_are_decided_only_when_no_transaction_older_than_the_mark_runs() {
        let (mut horizon, now) = (Horizon::default(), Instant::now());
        assert_eq!(horizon.mark_beyond(now), Some(0));
        assert_eq!(horizon.see(look(100, 7, Some(105)), now), 0);
        assert_eq!(horizon.mark_beyond(now), None);
        assert_eq!(horizon.see(look(104, 9, None), now), 0);
        assert_eq!(horizon.see(look(105, 9, None), now), 7);
        assert_eq!(horizon.mark_beyond(now + MARK_EVERY), Some(7));
    }

    #[test]
    fn a_database_that_went_back_in_time_starts_over() {
        let (mut horizon, now) = (Horizon::default(), Instant::now());
        horizon.see(look(100, 7, Some(101)), now);
        horizon.see(look(101, 7, None), now);
        assert_eq!(horizon.see(look(101, 3, None), now), 0);
        assert_eq!((horizon.trusted(7), horizon.trusted(3)), (0, 3));
    }
}
