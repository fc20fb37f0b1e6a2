//! What was really done to whom, and when: plans meet relays that are just being started, and take the time they take.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Micros;
use crate::exposure::Upset;
use crate::stage::Eviction;

/// How long a request may be on its way on a link that holds nothing back. Its relay's successor waits for the lease,
/// which is longer.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// A stretch of time in which a relay's requests were held back.
#[derive(Debug, Clone, Copy)]
struct HeldBack {
    berth: usize,
    from: Micros,
    until: Micros,
}

/// The end of a relay that may repeat something.
#[derive(Debug, Clone, Copy)]
struct Loss {
    berth: usize,
    from: Micros,
    until: Micros,
}

#[derive(Debug, Default)]
struct Pages {
    troubles: BTreeMap<&'static str, usize>,
    losses: Vec<Loss>,
    held_back: Vec<HeldBack>,
    deaths: HashMap<u32, Micros>,
    defects: Vec<String>,
}

/// Written by all tracks.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pages: Mutex<Pages>,
}

impl Journal {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A trouble of this name happened.
    pub(crate) fn count(&self, trouble: &'static str) {
        *self.pages().troubles.entry(trouble).or_default() += 1;
    }

    /// The relay in `berth` ended in this time and may have left something unrecorded.
    pub(crate) fn lose(&self, berth: usize, from: Micros, until: Micros) {
        self.pages().losses.push(Loss { berth, from, until });
    }

    /// The process is no more.
    pub(crate) fn bury(&self, pid: u32, at: Micros) {
        self.pages().deaths.insert(pid, at);
    }

    /// Requests of `berth` were held back in this time.
    pub(crate) fn hold_back(&self, berth: usize, from: Micros, until: Micros) {
        self.pages().held_back.push(HeldBack { berth, from, until });
    }

    /// Something happened that must not happen, whatever the trouble.
    pub(crate) fn defect(&self, what: String) {
        self.pages().defects.push(what);
    }

    pub(crate) fn troubles(&self) -> BTreeMap<&'static str, usize> {
        self.pages().troubles.clone()
    }

    pub(crate) fn defects(&self) -> Vec<String> {
        self.pages().defects.clone()
    }

    /// Evictions of relays that were alive. A dead one's was counted when it died.
    pub(crate) fn lost_leases(&self, evictions: &[Eviction]) -> Vec<Eviction> {
        let pages = self.pages();
        let is_alive =
            |eviction: &&Eviction| pages.deaths.get(&eviction.pid).is_none_or(|&death| eviction.at < death);
        evictions.iter().filter(is_alive).cloned().collect()
    }

    /// All upsets: what ended relays, and the lost leases, given with the berth of each relay.
    pub(crate) fn upsets(&self, lost_leases: &[(usize, Micros)]) -> Vec<Upset> {
        let pages = self.pages();
        let leases = lost_leases.iter().map(|&(berth, at)| Loss { berth, from: at, until: at });
        let upset = |loss: Loss| {
            let overlaps = |held: &&HeldBack| {
                held.berth == loss.berth && held.from <= loss.until && held.until >= loss.from
            };
            let held = pages.held_back.iter().filter(overlaps).map(|held| held.until);
            let until = held.fold(loss.until, Micros::max);
            let on_its_way = Micros::try_from(ON_ITS_WAY.as_micros()).unwrap_or(Micros::MAX);
            Upset { from: loss.from, until: until + on_its_way }
        };
        pages.losses.iter().copied().chain(leases).map(upset).collect()
    }
}
