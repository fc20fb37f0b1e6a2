//! What to read next, and how far the to-do list was read.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Moment, Read};
use crate::event::{OutboxId, Shard};
use crate::lease::Term;
use crate::store::{Scan, ShardScan};

/// Pause after a look that found something; it doubles with every look that finds nothing, up to the poll interval.
const EAGER_PAUSE: Duration = Duration::from_millis(2);

/// How far one shard was read in the current term.
#[derive(Debug, Clone, Copy)]
struct Progress {
    epoch: i64,
    floor: OutboxId,
    cursor: OutboxId,
    more: bool,
}

/// A look that is repeated: eagerly while it finds something, lazily while it does not.
#[derive(Debug)]
pub(super) struct Pace {
    next_at: Moment,
    pause: Duration,
}

impl Pace {
    fn new() -> Self {
        Self { next_at: Moment::ZERO, pause: EAGER_PAUSE }
    }

    pub(super) fn next_at(&self) -> Moment {
        self.next_at
    }

    /// Look at once.
    pub(super) fn hurry(&mut self, now: Moment) {
        self.pause = EAGER_PAUSE;
        self.next_at = self.next_at.min(now);
    }

    pub(super) fn looked(&mut self, now: Moment, found: bool, longest: Duration) {
        self.pause = if found { EAGER_PAUSE.min(longest) } else { (self.pause * 2).min(longest) };
        self.next_at = now + self.pause;
    }
}

/// Reads: at most one is outstanding.
#[derive(Debug)]
pub(super) struct Feed {
    progress: BTreeMap<Shard, Progress>,
    pub(super) scan_pace: Pace,
    pub(super) due_pace: Pace,
    /// The terms under which the outstanding read was asked for.
    outstanding: Option<Vec<Term>>,
    /// Something may be new that the outstanding read did not see.
    news: bool,
    /// Something happened that the outstanding read may not have seen: that it finds nothing says nothing.
    stirred_meanwhile: bool,
    /// The last complete scan since anything happened found nothing.
    scan_clean: bool,
    /// The last look at what is due since anything happened found nothing.
    due_clean: bool,
}

impl Feed {
    pub(super) fn new() -> Self {
        Self {
            progress: BTreeMap::new(),
            scan_pace: Pace::new(),
            due_pace: Pace::new(),
            outstanding: None,
            news: false,
            stirred_meanwhile: false,
            scan_clean: false,
            due_clean: false,
        }
    }

    pub(super) fn gained(&mut self, now: Moment, term: Term) {
        self.progress.insert(term.shard, Progress { epoch: term.epoch, floor: 0, cursor: 0, more: true });
        self.stirred();
        self.scan_pace.hurry(now);
        self.due_pace.hurry(now);
    }

    /// The shard was lost, or is being handed back.
    pub(super) fn lost(&mut self, shard: Shard) {
        self.progress.remove(&shard);
    }

    /// Something happened: what was found clean may not be so any more.
    pub(super) fn stirred(&mut self) {
        self.scan_clean = false;
        self.due_clean = false;
        self.stirred_meanwhile = self.is_reading();
    }

    /// Nothing is on the to-do list or due, as far as the last reads know.
    pub(super) fn is_clean(&self) -> bool {
        self.scan_clean && self.due_clean
    }

    pub(super) fn is_reading(&self) -> bool {
        self.outstanding.is_some()
    }

    pub(super) fn is_scanning(&self, shard: Shard) -> bool {
        self.progress.contains_key(&shard)
    }

    pub(super) fn has_more(&self) -> bool {
        self.progress.values().any(|progress| progress.more)
    }

    pub(super) fn shards(&self) -> Vec<Shard> {
        self.progress.keys().copied().collect()
    }

    pub(super) fn scans(&self) -> Vec<ShardScan> {
        let scan = |(&shard, p): (&Shard, &Progress)| ShardScan { shard, floor: p.floor, cursor: p.cursor };
        self.progress.iter().map(scan).collect()
    }

    pub(super) fn begin(&mut self, read: Read) -> Read {
        let terms = self.progress.iter().map(|(&shard, p)| Term { shard, epoch: p.epoch });
        self.outstanding = Some(terms.collect());
        self.stirred_meanwhile = false;
        read
    }

    pub(super) fn end(&mut self, now: Moment) {
        self.outstanding = None;
        if std::mem::take(&mut self.news) {
            self.scan_pace.hurry(now);
        }
    }

    /// There may be something new on the to-do list.
    pub(super) fn heard_news(&mut self, now: Moment) {
        if self.is_reading() {
            self.news = true;
        } else {
            self.scan_pace.hurry(now);
        }
    }

    /// Whether the outstanding read was asked for in the shard's current term.
    pub(super) fn is_current(&self, shard: Shard) -> bool {
        let asked = self.outstanding.iter().flatten().find(|term| term.shard == shard);
        asked.is_some_and(|term| self.progress.get(&shard).is_some_and(|p| p.epoch == term.epoch))
    }

    /// Highest id that was scanned before the outstanding read.
    pub(super) fn cursor(&self, shard: Shard) -> OutboxId {
        self.progress.get(&shard).map_or(0, |p| p.cursor)
    }

    /// Takes over how far a scan came.
    pub(super) fn scanned(&mut self, now: Moment, scan: &Scan, found: bool, longest: Duration) {
        for scanned in &scan.shards {
            if !self.is_current(scanned.shard) {
                continue;
            }
            if let Some(progress) = self.progress.get_mut(&scanned.shard) {
                progress.floor = progress.floor.max(scanned.floor);
                progress.cursor = progress.cursor.max(scanned.cursor);
                progress.more = scanned.more;
            }
        }
        self.scan_clean = !found && !self.has_more() && !self.stirred_meanwhile;
        self.scan_pace.looked(now, found, longest);
        if self.has_more() {
            self.scan_pace.hurry(now);
        }
    }

    /// Takes over that a look at what is due is done.
    pub(super) fn looked_due(&mut self, now: Moment, found: bool, longest: Duration) {
        self.due_clean = !found && !self.stirred_meanwhile;
        self.due_pace.looked(now, found, longest);
    }

    /// The database did not answer: everything is to be asked again.
    pub(super) fn failed(&mut self, now: Moment, pause: Duration) {
        self.outstanding = None;
        self.scan_pace.looked(now, false, pause);
        self.due_pace.looked(now, false, pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ShardScanned;

    const IDLE: Duration = Duration::from_secs(3_600);

    fn idle() -> Feed {
        let mut feed = Feed::new();
        feed.gained(Moment::ZERO, Term { shard: 7, epoch: 1 });
        look(&mut feed, Moment::ZERO);
        feed
    }

    fn look(feed: &mut Feed, now: Moment) {
        let request = crate::store::ScanRequest {
            shards: feed.scans(),
            rows_per_shard: 1,
            rows_per_lane: 1,
            saturated: Vec::new(),
        };
        feed.begin(Read::Scan(request));
        let nothing = ShardScanned { shard: 7, cursor: 0, floor: 0, more: false };
        feed.scanned(now, &Scan { rows: Vec::new(), shards: vec![nothing] }, false, IDLE);
    }

    /// A single run ends when the last reads found nothing, so they must have begun after the last thing that happened.
    #[test]
    fn a_read_that_began_before_something_happened_does_not_end_a_single_run() {
        let mut feed = idle();
        feed.looked_due(Moment::ZERO, false, IDLE);
        assert!(feed.is_clean());
        feed.stirred();
        feed.looked_due(Moment::ZERO, false, IDLE);
        feed.end(Moment::ZERO);
        assert!(!feed.is_clean(), "something was recorded while the look was under way");
        look(&mut feed, Moment::ZERO);
        feed.looked_due(Moment::ZERO, false, IDLE);
        assert!(feed.is_clean());
    }

    #[test]
    fn news_is_looked_at_at_once() {
        let mut feed = idle();
        feed.end(Moment::ZERO);
        assert!(feed.scan_pace.next_at() > Moment::ZERO);
        feed.heard_news(Moment::ZERO);
        assert_eq!(feed.scan_pace.next_at(), Moment::ZERO);
    }

    #[test]
    fn news_during_a_look_is_looked_at_after_it() {
        let mut feed = idle();
        feed.heard_news(Moment::ZERO);
        let now = Duration::from_millis(1);
        look(&mut feed, now);
        assert!(feed.scan_pace.next_at() > now);
        feed.end(now);
        assert_eq!(feed.scan_pace.next_at(), now);
        look(&mut feed, now);
        feed.end(now);
        assert!(feed.scan_pace.next_at() > now, "the same news was looked at twice");
    }
}
