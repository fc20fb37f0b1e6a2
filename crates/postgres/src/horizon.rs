//! How far down every id is decided, so that scans may leave it out.
//!
//! A producer has its transaction id before it draws an event's id. So when the id sequence stood at `last_id` and a
//! transaction id `mark` was drawn after looking, every event up to `last_id` belongs to a transaction older than
//! `mark`; once the oldest running transaction is not older than `mark`, all of them are committed or rolled back, and
//! any snapshot taken after that shows the committed ones.
//!
//! A transaction that stays open for long would hold that up, whatever it wrote. But a producer also locks `outbox`
//! before it draws an id, and until it ends. So when the mark is not reached soon, those are asked for that have the
//! lock: once none is left of those that had it at some moment after looking, every id up to `last_id` is decided. A
//! prepared transaction keeps the lock under another name, so nothing is concluded while there is one.

use std::time::{Duration, Instant};

use postbox_core::event::OutboxId;

/// A mark costs a transaction id, of which there are two thousand million; so not with every poll of a busy relay.
const MARK_EVERY: Duration = Duration::from_millis(50);

/// How long the mark of ordinary transactions takes to be reached. Asking for locks costs the database more.
const PATIENCE: Duration = Duration::from_millis(500);

/// What one store knows of the id sequence.
#[derive(Debug, Default)]
pub(crate) struct Horizon {
    /// Every id up to here is decided.
    decided: OutboxId,
    /// Where the sequence stood at the last look.
    last_id: Option<OutboxId>,
    candidate: Option<Candidate>,
    /// The last candidate's mark was not reached in time, and the next one's need not be waited for.
    held_up: bool,
    marked_at: Option<Instant>,
    asked_at: Option<Instant>,
}

#[derive(Debug)]
struct Candidate {
    last_id: OutboxId,
    mark: i64,
    made_at: Instant,
    /// Who had the lock at some moment after the candidate was made.
    writers: Option<Vec<String>>,
}

/// What the database answered to a look at the horizon.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) oldest_running: i64,
    pub(crate) last_id: OutboxId,
    pub(crate) mark: Option<i64>,
    /// The transactions that have locked `outbox` for writing, if they were asked for; one without a name is prepared.
    pub(crate) writers: Option<Vec<Option<String>>>,
}

impl Horizon {
    /// The id beyond which the next look shall set a mark; `None` while one is waiting to be reached.
    pub(crate) fn mark_beyond(&self, now: Instant) -> Option<OutboxId> {
        let recently = self.marked_at.is_some_and(|at| now.duration_since(at) < MARK_EVERY);
        (self.candidate.is_none() && !recently).then_some(self.decided)
    }

    /// Whether the next look shall ask who writes.
    pub(crate) fn wants_writers(&self, now: Instant) -> bool {
        let recently = self.asked_at.is_some_and(|at| now.duration_since(at) < MARK_EVERY);
        let late = |candidate: &Candidate| self.held_up || now.duration_since(candidate.made_at) >= PATIENCE;
        !recently && self.candidate.as_ref().is_some_and(late)
    }

    /// Takes in a look and answers up to which id everything was decided when it was made.
    pub(crate) fn see(&mut self, look: Look, now: Instant) -> OutboxId {
        if look.last_id < self.decided {
            // Another history: a restored backup, or a standby that had not received everything.
            *self = Self::default();
        }
        self.last_id = Some(look.last_id);
        if look.writers.is_some() {
            self.asked_at = Some(now);
        }
        if let Some(candidate) = &mut self.candidate {
            let reached = look.oldest_running >= candidate.mark;
            if reached || look.writers.is_some_and(|writers| candidate.outlived_all(writers)) {
                self.decided = candidate.last_id;
                self.held_up = !reached;
                self.candidate = None;
            }
        }
        if let Some(mark) = look.mark {
            self.candidate = Some(Candidate { last_id: look.last_id, mark, made_at: now, writers: None });
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

impl Candidate {
    /// Whether, as these have the lock now, none is left of those that had it at an earlier moment after the candidate was
    /// made.
    fn outlived_all(&mut self, now: Vec<Option<String>>) -> bool {
        let prepared = now.iter().any(Option::is_none);
        let now: Vec<String> = now.into_iter().flatten().collect();
        let outlived = match &self.writers {
            Some(before) => !before.iter().any(|writer| now.contains(writer)),
            None => now.is_empty(),
        };
        self.writers.get_or_insert(now);
        outlived && !prepared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(oldest_running: i64, last_id: OutboxId, mark: Option<i64>) -> Look {
        Look { oldest_running, last_id, mark, writers: None }
    }

    /// A look while a transaction far older than any mark runs.
    fn held_up(last_id: OutboxId, mark: Option<i64>, writers: &[&str]) -> Look {
        let writers = writers.iter().map(|name| (*name != "prepared").then(|| (*name).to_owned())).collect();
        Look { writers: Some(writers), ..look(1, last_id, mark) }
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

    #[test]
    fn a_transaction_that_writes_elsewhere_holds_nothing_up_for_long() {
        let (mut horizon, start) = (Horizon::default(), Instant::now());
        horizon.see(look(1, 7, Some(100)), start);
        assert!(!horizon.wants_writers(start));
        let late = start + PATIENCE;
        assert!(horizon.wants_writers(late));
        assert_eq!(horizon.see(held_up(9, None, &[]), late), 7);
        // The next one is not waited for.
        horizon.see(look(1, 9, Some(101)), late);
        assert!(horizon.wants_writers(late + MARK_EVERY));
        assert_eq!(horizon.see(held_up(9, None, &[]), late + MARK_EVERY), 9);
        // Until marks are reached again.
        horizon.see(look(1, 12, Some(102)), late + 2 * MARK_EVERY);
        assert_eq!(horizon.see(look(102, 12, None), late + 2 * MARK_EVERY), 12);
        horizon.see(look(102, 13, Some(103)), late + 3 * MARK_EVERY);
        assert!(!horizon.wants_writers(late + 3 * MARK_EVERY));
    }

    #[test]
    fn ids_wait_for_every_writer_that_was_there_and_for_no_other() {
        let (mut horizon, now) = (Horizon::default(), Instant::now());
        horizon.see(look(1, 7, Some(100)), now);
        assert_eq!(horizon.see(held_up(9, None, &["3/1", "4/1"]), now), 0);
        assert_eq!(horizon.see(held_up(9, None, &["4/1", "5/1"]), now), 0);
        assert_eq!(horizon.see(held_up(9, None, &["5/1", "3/2"]), now), 7);
    }

    #[test]
    fn nothing_is_concluded_while_a_prepared_transaction_may_be_one_of_them() {
        let (mut horizon, now) = (Horizon::default(), Instant::now());
        horizon.see(look(1, 7, Some(100)), now);
        assert_eq!(horizon.see(held_up(9, None, &["3/1"]), now), 0);
        assert_eq!(horizon.see(held_up(9, None, &["prepared"]), now), 0);
        assert_eq!(horizon.see(held_up(9, None, &["prepared", "5/1"]), now), 0);
        assert_eq!(horizon.see(held_up(9, None, &["5/1"]), now), 7);
    }
}
