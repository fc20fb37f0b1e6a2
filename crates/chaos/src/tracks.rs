//! The tracks of a plan, played.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use postbox_testkit::proxy::{Proxy, Weather};
use tokio::time::Instant;

use crate::audience::{Audience, Mood};
use crate::clock;
use crate::fleet::{Fleet, Timing};
use crate::journal::Journal;
use crate::plan::{DatabaseTrouble, LinkTrouble, Planned, ProcessTrouble, Track};
use crate::stage::Stage;

/// How often a relay that should run is looked after.
const ROUND: Duration = Duration::from_millis(200);

/// What a stop may take beyond the drain: giving the lease back, on a machine that is busy.
const GOODBYE: Duration = Duration::from_secs(10);

/// Exit code of a relay that cannot reach its database when it starts.
const NO_DATABASE: i32 = 3;

/// What all tracks share.
#[derive(Debug)]
pub(crate) struct Theatre {
    pub(crate) stage: Stage,
    pub(crate) fleet: Fleet,
    pub(crate) audience: Audience,
    pub(crate) journal: Journal,
    pub(crate) timing: Timing,
    /// When all trouble ends.
    pub(crate) curtain: Instant,
}

impl Theatre {
    /// Waits, but not beyond the end; tells whether there is time left.
    async fn wait(&self, time: Duration) -> bool {
        tokio::time::sleep_until((Instant::now() + time).min(self.curtain)).await;
        Instant::now() < self.curtain
    }

    /// Waits while the relay in `berth` is started again whenever it has ended by itself.
    async fn look_after(&self, berth: usize, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            self.ensure_running(berth);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.wait(left.min(ROUND)).await {
                return Instant::now() < self.curtain;
            }
        }
    }

    /// Starts the relay again if it has ended, which only one that never reached its database may.
    pub(crate) fn ensure_running(&self, number: usize) {
        let mut berth = self.fleet.berth(number);
        if let Some(end) = berth.end() {
            let pid = berth.relay().id();
            self.journal.bury(pid, clock::now());
            if end.code() == Some(NO_DATABASE) {
                self.journal.count("starts without a database");
            } else {
                self.journal.defect(format!("relay {pid} ended by itself: {end}"));
            }
            berth.start();
        }
    }

    /// Stops the relay in `berth` and tells how it ended, killing it when it does not.
    pub(crate) async fn stop(&self, number: usize) -> Option<ExitStatus> {
        let asked = clock::now();
        let patience = Instant::now() + self.timing.drain + GOODBYE;
        let pid = {
            let mut berth = self.fleet.berth(number);
            if berth.end().is_some() {
                return None;
            }
            berth.relay().terminate();
            berth.relay().id()
        };
        loop {
            let (end, logbook) = {
                let mut berth = self.fleet.berth(number);
                (berth.end(), berth.last_logbook())
            };
            if let Some(end) = end {
                let now = clock::now();
                self.journal.bury(pid, now);
                if logbook.cut_short > 0 || end.code().is_none() {
                    self.journal.count("stops cut short");
                    self.journal.lose(number, asked, now);
                }
                return Some(end);
            }
            if Instant::now() > patience {
                self.journal
                    .defect(format!("relay {pid} did not stop within {:?}", self.timing.drain + GOODBYE));
                self.kill(number);
                return None;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn kill(&self, number: usize) {
        let mut berth = self.fleet.berth(number);
        let from = clock::now();
        berth.relay().kill();
        let pid = berth.relay().id();
        drop(berth);
        let until = clock::now();
        self.journal.bury(pid, until);
        self.journal.lose(number, from, until);
    }
}

pub(crate) async fn play_processes(theatre: Arc<Theatre>, berth: usize, track: Track<ProcessTrouble>) {
    for Planned { after, trouble } in track {
        if !theatre.look_after(berth, after).await {
            break;
        }
        match trouble {
            ProcessTrouble::Kill(down) => {
                theatre.journal.count("kills");
                theatre.kill(berth);
                theatre.wait(down).await;
                theatre.fleet.berth(berth).start();
            }
            ProcessTrouble::Pause(lasting) => {
                let longer = lasting > theatre.timing.lease;
                theatre.journal.count(if longer { "pauses beyond the lease" } else { "short pauses" });
                theatre.fleet.berth(berth).relay().pause();
                theatre.wait(lasting).await;
                theatre.fleet.berth(berth).relay().resume();
            }
            ProcessTrouble::Restart => {
                theatre.journal.count("restarts");
                theatre.stop(berth).await;
                theatre.fleet.berth(berth).start();
            }
        }
    }
    // What is left of the time, in which it still may have to be started again.
    theatre.look_after(berth, theatre.curtain.saturating_duration_since(Instant::now())).await;
}

/// Which link of a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Database,
    Receiver,
}

pub(crate) async fn play_link(theatre: Arc<Theatre>, number: usize, link: Link, track: Track<LinkTrouble>) {
    let order = |order: &dyn Fn(&Proxy)| {
        let berth = theatre.fleet.berth(number);
        order(if link == Link::Database { berth.database_link() } else { berth.receiver_link() });
    };
    for Planned { after, trouble } in track {
        if !theatre.wait(after).await {
            break;
        }
        theatre.journal.count(match link {
            Link::Database => "troubles between relay and database",
            Link::Receiver => "troubles between relay and receiver",
        });
        let (weather, lasting) = match trouble {
            LinkTrouble::Cut => {
                order(&Proxy::cut);
                continue;
            }
            LinkTrouble::HalfClose(direction) => {
                order(&|proxy| proxy.half_close(direction));
                continue;
            }
            LinkTrouble::Slow(delay, lasting) => (Weather::Slow(delay), lasting),
            LinkTrouble::Still(lasting) => (Weather::Still, lasting),
            LinkTrouble::Refuse(lasting) => {
                order(&Proxy::cut);
                (Weather::Refusing, lasting)
            }
        };
        let from = clock::now();
        order(&|proxy| proxy.set_weather(weather));
        theatre.wait(lasting).await;
        order(&|proxy| proxy.set_weather(Weather::Clear));
        if link == Link::Receiver && weather != Weather::Refusing {
            theatre.journal.hold_back(number, from, clock::now());
        }
    }
}

pub(crate) async fn play_database(theatre: Arc<Theatre>, track: Track<DatabaseTrouble>) {
    for Planned { after, trouble } in track {
        if !theatre.wait(after).await {
            break;
        }
        let stage = theatre.stage.clone();
        let done = tokio::task::spawn_blocking(move || match trouble {
            DatabaseTrouble::TerminateBackends => stage.sql(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'postbox'",
            ),
            DatabaseTrouble::CrashRestart => stage.crash_and_recover(),
        });
        theatre.journal.count(match trouble {
            DatabaseTrouble::TerminateBackends => "backends terminated (all relays)",
            DatabaseTrouble::CrashRestart => "database crashes",
        });
        done.await.expect("the database is there again");
    }
}

pub(crate) async fn play_receiver(theatre: Arc<Theatre>, track: Track<(Mood, Duration)>) {
    for Planned { after, trouble: (mood, lasting) } in track {
        if !theatre.wait(after).await {
            break;
        }
        theatre.journal.count("moods of the receiver");
        theatre.audience.set_mood(mood);
        theatre.wait(lasting).await;
        theatre.audience.set_mood(Mood::Good);
    }
}
