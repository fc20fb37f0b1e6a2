//! The plan of troubles: what befalls whom, and in which order, decided by one seed before anything starts.
//!
//! A plan is a set of tracks that run beside each other; within a track one trouble follows the other. So a relay is
//! killed while its database link is slow and the receiver fails, but never killed twice at once.

use std::time::Duration;

use postbox_testkit::faults::Dice;
use postbox_testkit::proxy::Direction;

use crate::audience::Mood;

/// What befalls a relay's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessTrouble {
    /// SIGKILL, and a new relay after this long.
    Kill(Duration),
    /// SIGSTOP, and SIGCONT after this long: shorter than the lease, or longer.
    Pause(Duration),
    /// SIGTERM, and a new relay once it has ended.
    Restart,
}

/// What befalls the way between a relay and the database, or a relay and the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkTrouble {
    /// Every connection is reset.
    Cut,
    /// One direction of every connection is ended.
    HalfClose(Direction),
    /// Everything takes longer by the first, for the second.
    Slow(Duration, Duration),
    /// Nothing passes, and nothing is closed.
    Still(Duration),
    /// No new connection can be made, after a cut.
    Refuse(Duration),
}

/// What befalls the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseTrouble {
    /// `pg_terminate_backend` for every connection of a relay.
    TerminateBackends,
    /// `pg_ctl stop -m immediate`, recovery and a new start.
    CrashRestart,
}

/// A trouble, and the calm on its track before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned<T> {
    /// How long after the end of the trouble before.
    pub after: Duration,
    /// What happens then.
    pub trouble: T,
}

/// A sequence of troubles.
pub(crate) type Track<T> = Vec<Planned<T>>;

/// The tracks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Decides everything below, and nothing else does.
    pub seed: u64,
    /// For how long there is trouble.
    pub lasting: Duration,
    /// One for each relay.
    pub processes: Vec<Track<ProcessTrouble>>,
    /// Between each relay and the database.
    pub database_links: Vec<Track<LinkTrouble>>,
    /// Between each relay and the receiver.
    pub receiver_links: Vec<Track<LinkTrouble>>,
    /// The database.
    pub database: Track<DatabaseTrouble>,
    /// The receiver, and how long each mood lasts.
    pub receiver: Track<(Mood, Duration)>,
}

/// Dice of one track, and the scale of its pauses.
struct Author {
    dice: Dice,
    lasting: Duration,
}

impl Author {
    fn between(&mut self, least: u64, most: u64) -> Duration {
        let span = usize::try_from(most - least + 1).unwrap_or(1);
        Duration::from_millis(least + self.dice.below(span) as u64)
    }

    fn track<T>(
        &mut self,
        pause: (u64, u64),
        mut trouble: impl FnMut(&mut Self) -> (T, Duration),
    ) -> Track<T> {
        let mut track = Vec::new();
        let mut time = Duration::ZERO;
        loop {
            let after = self.between(pause.0, pause.1);
            let (trouble, takes) = trouble(self);
            time += after + takes;
            if time > self.lasting {
                return track;
            }
            track.push(Planned { after, trouble });
        }
    }

    fn process(&mut self, lease: Duration) -> (ProcessTrouble, Duration) {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        match self.dice.below(100) {
            0..35 => {
                let down = self.between(0, 2_000);
                (ProcessTrouble::Kill(down), down)
            }
            35..55 => {
                let short = self.between(50, lease / 2);
                (ProcessTrouble::Pause(short), short)
            }
            55..75 => {
                let long = self.between(lease * 5 / 4, lease * 5 / 2);
                (ProcessTrouble::Pause(long), long)
            }
            _ => (ProcessTrouble::Restart, Duration::from_secs(1)),
        }
    }

    fn link(&mut self) -> (LinkTrouble, Duration) {
        match self.dice.below(100) {
            0..25 => (LinkTrouble::Cut, Duration::ZERO),
            25..45 => {
                let to_server = self.dice.happens(50);
                let direction = if to_server { Direction::ToServer } else { Direction::ToClient };
                (LinkTrouble::HalfClose(direction), Duration::ZERO)
            }
            45..65 => {
                let (delay, lasting) = (self.between(20, 600), self.between(1_000, 5_000));
                (LinkTrouble::Slow(delay, lasting), lasting)
            }
            65..85 => {
                let lasting = self.between(300, 6_000);
                (LinkTrouble::Still(lasting), lasting)
            }
            _ => {
                let lasting = self.between(300, 4_000);
                (LinkTrouble::Refuse(lasting), lasting)
            }
        }
    }

    fn mood(&mut self) -> ((Mood, Duration), Duration) {
        let mood = [Mood::Failing, Mood::Stalling, Mood::Forgetful][self.dice.below(3)];
        let lasting = self.between(500, 4_000);
        ((mood, lasting), lasting)
    }
}

impl Plan {
    /// The plan that `seed` decides, for so many relays with this lease.
    #[must_use]
    pub fn new(seed: u64, lasting: Duration, relays: usize, lease: Duration) -> Self {
        let mut seeds = Dice::new(seed);
        let mut author = || Author { dice: Dice::new(seeds.roll()), lasting };
        Self {
            seed,
            lasting,
            processes: (0..relays).map(|_| author().track((2_000, 12_000), |a| a.process(lease))).collect(),
            database_links: (0..relays).map(|_| author().track((3_000, 20_000), Author::link)).collect(),
            receiver_links: (0..relays).map(|_| author().track((3_000, 15_000), Author::link)).collect(),
            database: author().track((4_000, 20_000), |author| {
                if author.dice.happens(65) {
                    (DatabaseTrouble::TerminateBackends, Duration::ZERO)
                } else {
                    (DatabaseTrouble::CrashRestart, Duration::from_secs(1))
                }
            }),
            receiver: author().track((3_000, 12_000), Author::mood),
        }
    }

    /// How many troubles there are in all.
    #[must_use]
    pub fn len(&self) -> usize {
        let links = self.database_links.iter().chain(&self.receiver_links).map(Vec::len).sum::<usize>();
        let processes = self.processes.iter().map(Vec::len).sum::<usize>();
        processes + links + self.database.len() + self.receiver.len()
    }

    /// Whether nothing happens at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_alone_decides_the_plan() {
        let plan = |seed| Plan::new(seed, Duration::from_secs(60), 3, Duration::from_secs(3));
        assert_eq!(plan(1), plan(1));
        assert_ne!(plan(1).processes, plan(2).processes);
        assert!(plan(1).len() > 30, "{}", plan(1).len());
    }
}
