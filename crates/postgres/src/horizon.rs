//! How far down every id is decided, so that scans may leave it out.
//!
//! A producer has its transaction id before it draws an event's id. So when the id sequence stood at `last_id` and a
//! transaction id `mark` was drawn after looking, every event up to `last_id` belongs to a transaction older than
//! `mark`; once the oldest running transaction is not older than `mark`, all of them are committed or rolled back, and
//! any snapshot taken after that shows the committed ones.
//!
//! A transaction that stays open for long would hold that up, whatever it wrote, and every scan would pass over all that
//! was delivered since. But a producer also locks `outbox` before it draws an id, and until it ends. So when the mark is not
//! reached soon, those are asked for that have the lock, and an undecided id up to `last_id` can only come from one of those
//! that had it at some moment after looking and have had it ever since. When none of them is left, every such id is decided.
//! While some are left, nothing new can be seen there, so scans leave those ids out until one of them has ended; the floor
//! itself waits. A prepared transaction keeps the lock under another name, so nothing is concluded while there is one.

use std::time::{Duration, Instant};

use postbox_core::event::OutboxId;

/// A mark costs a transaction id, of which there are two thousand million; so not with every poll of a busy relay. Nor is
/// it asked more often who has the lock.
const MARK_EVERY: Duration = Duration::from_millis(50);

/// How long the marks and locks of ordinary transactions are waited for. Asking for locks costs the database more.
const PATIENCE: Duration = Duration::from_millis(500);

/// Scans that leave ids out are followed by one that does not, at the latest after this while: should a conclusion of this
/// module ever be wrong, an event is late and not lost.
const FULL_SCAN_EVERY: Duration = Duration::from_secs(5);

/// What one store knows of the id sequence.
#[derive(Debug, Default)]
pub(crate) struct Horizon {
    /// Every id up to here is decided.
    decided: OutboxId,
    /// Where the sequence stood at the last look.
    last_id: Option<OutboxId>,
    candidate: Option<Candidate>,
    held: Option<Held>,
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
    /// Who had the lock at some moment after the candidate was made, and has had it since.
    writers: Option<Vec<String>>,
}

/// Ids that only certain transactions can still decide.
#[derive(Debug)]
struct Held {
    up_to: OutboxId,
    by: Vec<String>,
    /// Since when scans leave them out; `None` when the next one must not.
    since: Option<Instant>,
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
        let known = self.held.as_ref().map_or(self.decided, |held| held.up_to);
        (self.candidate.is_none() && !recently).then_some(known)
    }

    /// Whether the next look shall ask who writes.
    pub(crate) fn wants_writers(&self, now: Instant) -> bool {
        let recently = self.asked_at.is_some_and(|at| now.duration_since(at) < MARK_EVERY);
        let late = |candidate: &Candidate| self.held_up || now.duration_since(candidate.made_at) >= PATIENCE;
        !recently && (self.held.is_some() || self.candidate.as_ref().is_some_and(late))
    }

    /// Where the next scan shall begin in a shard, when the caller's floor and cursor in it are these. A floor beyond the
    /// sequence belongs to another history, in which its ids are yet to be drawn.
    pub(crate) fn scan_above(&self, floor: OutboxId, cursor: OutboxId) -> OutboxId {
        if self.last_id.is_some_and(|last_id| last_id < floor) {
            return 0;
        }
        match &self.held {
            Some(Held { up_to, since: Some(_), .. }) => floor.max(cursor.min(*up_to)),
            _ => floor,
        }
    }

    /// Takes in a look, made right before the scan that [`Horizon::scan_above`] was last asked for, and answers up to which
    /// id everything was decided and is seen in that scan.
    pub(crate) fn see(&mut self, look: Look, now: Instant) -> OutboxId {
        if look.last_id < self.decided {
            // Another history: a restored backup, or a standby that had not received everything.
            *self = Self::default();
        }
        self.last_id = Some(look.last_id);
        let seen_before = self.decided;
        let left_out = self.held.as_mut().is_some_and(|held| {
            let left_out = held.since.is_some();
            if held.since.is_none_or(|since| now.duration_since(since) >= FULL_SCAN_EVERY) {
                held.since = if left_out { None } else { Some(now) };
            }
            left_out
        });
        if let Some(writers) = look.writers {
            self.asked_at = Some(now);
            self.hear_of(writers, left_out, now);
        }
        if let Some(candidate) = self.candidate.take_if(|candidate| look.oldest_running >= candidate.mark) {
            self.decided = candidate.last_id;
            self.held = None;
            self.held_up = false;
        }
        if let Some(mark) = look.mark {
            self.candidate = Some(Candidate { last_id: look.last_id, mark, made_at: now, writers: None });
            self.marked_at = Some(now);
        }
        // The next scan leaves nothing out that is decided now, since nobody holds it any more.
        if left_out { seen_before } else { self.decided }
    }

    /// Takes in who has the lock. `left_out`: the scan that follows leaves ids out.
    fn hear_of(&mut self, writers: Vec<Option<String>>, left_out: bool, now: Instant) {
        let prepared = writers.iter().any(Option::is_none);
        let writers: Vec<String> = writers.into_iter().flatten().collect();
        if let Some(held) = &mut self.held {
            let before = held.by.len();
            held.by.retain(|holder| writers.contains(holder));
            if prepared {
                // Whoever is missing may be that one.
                self.held = None;
            } else if held.by.is_empty() {
                self.decided = held.up_to;
                self.held = None;
            } else if held.by.len() < before {
                held.since = None;
            }
        }
        let Some(candidate) = &mut self.candidate else { return };
        let left = candidate.writers.get_or_insert_with(|| writers.clone());
        if prepared {
            return;
        }
        left.retain(|writer| writers.contains(writer));
        let (done, late) = (left.is_empty(), now.duration_since(candidate.made_at) >= PATIENCE);
        if !done && !late {
            return;
        }
        let (up_to, by) = (candidate.last_id, std::mem::take(left));
        self.candidate = None;
        self.held_up = true;
        if done {
            self.decided = up_to;
            self.held = None;
        } else {
            let since = match &self.held {
                Some(held) => held.since,
                None => (!left_out).then_some(now),
            };
            self.held = Some(Held { up_to, by, since });
        }
    }

    /// Forgets everything: what answers next may be another server with another history, or what a scan showed was not
    /// taken in.
    pub(crate) fn connection_lost(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        assert_eq!((horizon.scan_above(7, 9), horizon.scan_above(3, 9)), (0, 3));
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

    #[test]
    fn what_one_open_transaction_holds_is_left_out_until_it_ends_and_then_scanned_once() {
        let (mut horizon, start) = (Horizon::default(), Instant::now());
        horizon.see(look(1, 70, Some(100)), start);
        let late = start + PATIENCE;
        assert_eq!(horizon.see(held_up(90, None, &["3/1", "4/1"]), late), 0);
        assert_eq!(
            (horizon.scan_above(0, 90), horizon.scan_above(0, 50)),
            (70, 50),
            "never beyond the cursor"
        );
        assert_eq!(horizon.see(held_up(90, Some(101), &["3/1", "5/1"]), late + MARK_EVERY), 0);
        assert_eq!(horizon.scan_above(0, 90), 0, "one of them has ended");
        assert_eq!(horizon.see(held_up(90, None, &["3/1"]), late + 2 * MARK_EVERY), 0);
        assert_eq!(horizon.scan_above(0, 90), 70);
        assert_eq!(horizon.see(held_up(90, None, &[]), late + 3 * MARK_EVERY), 0, "this scan left them out");
        assert_eq!(horizon.scan_above(0, 90), 0);
        assert_eq!(horizon.see(look(1, 90, None), late + 3 * MARK_EVERY), 90);
    }

    /// A step of the modelled world: a transaction by its number, or a scan.
    #[derive(Debug, Clone)]
    enum Step {
        WriteElsewhere(usize),
        Draw(usize),
        Prepare(usize),
        Commit(usize),
        RollBack(usize),
        /// After so many milliseconds; this transaction commits between the look and the scan.
        Scan(u64, usize),
    }

    #[derive(Debug, Clone, Default)]
    struct Transaction {
        number: Option<i64>,
        ids: Vec<OutboxId>,
        name: String,
        prepared: bool,
    }

    /// A database with one shard, and a caller that takes in all that scans show.
    #[derive(Debug)]
    struct World {
        transactions: Vec<Transaction>,
        begun: usize,
        next_number: i64,
        last_id: OutboxId,
        committed: Vec<OutboxId>,
        seen: Vec<OutboxId>,
        floor: OutboxId,
        cursor: OutboxId,
        now: Instant,
        horizon: Horizon,
    }

    impl World {
        fn new() -> Self {
            Self {
                transactions: vec![Transaction::default(); 4],
                begun: 0,
                next_number: 100,
                last_id: 0,
                committed: Vec::new(),
                seen: Vec::new(),
                floor: 0,
                cursor: 0,
                now: Instant::now(),
                horizon: Horizon::default(),
            }
        }

        fn step(&mut self, step: &Step) {
            match *step {
                Step::WriteElsewhere(n) => self.write(n),
                Step::Draw(n) if !self.transactions[n].prepared => {
                    self.write(n);
                    self.last_id += 1;
                    self.transactions[n].ids.push(self.last_id);
                }
                Step::Draw(_) => {}
                Step::Prepare(n) => self.transactions[n].prepared = self.transactions[n].number.is_some(),
                Step::Commit(n) => {
                    let ids = std::mem::take(&mut self.transactions[n]).ids;
                    self.committed.extend(ids);
                }
                Step::RollBack(n) => self.transactions[n] = Transaction::default(),
                Step::Scan(after, commits) => self.scan(Duration::from_millis(after), commits),
            }
        }

        fn write(&mut self, n: usize) {
            if self.transactions[n].number.is_none() {
                self.begun += 1;
                self.transactions[n].name = format!("{n}/{}", self.begun);
                self.transactions[n].number = Some(self.next_number);
                self.next_number += 1;
            }
        }

        fn scan(&mut self, after: Duration, commits: usize) {
            self.now += after;
            let (known, asked) = (self.horizon.mark_beyond(self.now), self.horizon.wants_writers(self.now));
            let above = self.horizon.scan_above(self.floor, self.cursor);
            let running = self.transactions.iter().filter_map(|transaction| transaction.number).min();
            let writers = self.transactions.iter().filter(|transaction| !transaction.ids.is_empty());
            let name = |writer: &Transaction| (!writer.prepared).then(|| writer.name.clone());
            let look = Look {
                oldest_running: running.unwrap_or(self.next_number),
                last_id: self.last_id,
                mark: known.filter(|&known| self.last_id > known).map(|_| {
                    self.next_number += 1;
                    self.next_number - 1
                }),
                writers: asked.then(|| writers.map(name).collect()),
            };
            self.step(&Step::Commit(commits));
            let shown = self.committed.iter().copied().filter(|&id| id > above);
            self.seen.extend(shown);
            self.cursor = self.cursor.max(self.committed.iter().copied().max().unwrap_or(0));
            self.floor = self.floor.max(self.horizon.see(look, self.now));
            let undecided = self.transactions.iter().flat_map(|transaction| &transaction.ids);
            let unseen = self.committed.iter().filter(|id| !self.seen.contains(id));
            for &id in undecided.chain(unseen) {
                assert!(id > self.floor, "{id} is below the floor {}", self.floor);
            }
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        let transaction = 0..4_usize;
        prop_oneof![
            1 => transaction.clone().prop_map(Step::WriteElsewhere),
            4 => transaction.clone().prop_map(Step::Draw),
            1 => transaction.clone().prop_map(Step::Prepare),
            2 => transaction.clone().prop_map(Step::Commit),
            1 => transaction.clone().prop_map(Step::RollBack),
            4 => (prop_oneof![Just(60), Just(20), Just(510)], transaction).prop_map(|(ms, n)| Step::Scan(ms, n)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Nothing below the floor is undecided or unseen, and all that was committed is seen within three scans.
        #[test]
        fn no_event_is_left_behind(steps in proptest::collection::vec(step(), 1..40)) {
            let mut world = World::new();
            steps.iter().for_each(|step| world.step(step));
            (0..4).for_each(|n| world.step(&Step::Commit(n)));
            (0..3).for_each(|_| world.scan(MARK_EVERY, 0));
            prop_assert!(world.committed.iter().all(|id| world.seen.contains(id)), "{world:?}");
        }
    }
}
