//! Relays as processes, each with its own way to the database and to the receiver.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use postbox_testkit::process::Process;
use postbox_testkit::proxy::Proxy;

use crate::logbook::Logbook;
use crate::program;
use crate::stage::Stage;

/// Attempts that one relay may have in flight.
pub const CONCURRENCY: usize = 16;

/// How relays work.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Their lease.
    pub lease: Duration,
    /// Longest time of an attempt.
    pub attempt: Duration,
    /// How long they wait for attempts in flight when they are stopped.
    pub drain: Duration,
}

impl Default for Timing {
    /// Short enough to be lost often.
    fn default() -> Self {
        Self { lease: Duration::from_secs(3), attempt: Duration::from_secs(1), drain: Duration::from_secs(3) }
    }
}

/// A place for one relay at a time: its configuration, its links, the logs of all that were there.
#[derive(Debug)]
pub struct Berth {
    folder: PathBuf,
    database_link: Proxy,
    receiver_link: Proxy,
    relay: Option<Process>,
    pids: Vec<u32>,
}

impl Berth {
    /// A place in `folder`, which is made, for relays between `stage` and `receiver`.
    ///
    /// # Panics
    /// When the folder cannot be written.
    pub async fn build(folder: PathBuf, stage: &Stage, receiver: SocketAddr, timing: Timing) -> Self {
        let database_link = Proxy::start(stage.address()).await;
        let receiver_link = Proxy::start(receiver).await;
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let Timing { lease, attempt, drain } = timing;
        let configuration = format!(
            "[database]\nurl = \"{}\"\n[relay]\npoll_interval = \"50ms\"\nlease_ttl = \"{}ms\"\n\
             drain_timeout = \"{}ms\"\n[[destination]]\nname = \"receiver\"\nkind = \"webhook\"\n\
             url = \"http://{}/hooks\"\nconcurrency = {CONCURRENCY}\ntimeout = \"{}ms\"\n\
             retry = {{ attempts = 1000, delays = [\"100ms\", \"300ms\"], jitter = 0.5 }}\n\
             breaker = {{ consecutive = 5, patience = \"300ms\", cool_down = \"200ms\", longest_cool_down = \"2s\" }}\n",
            stage.url_through(database_link.address().port()),
            lease.as_millis(),
            drain.as_millis(),
            receiver_link.address(),
            attempt.as_millis(),
        );
        std::fs::write(folder.join("postbox.toml"), configuration).expect("a file can be written");
        Self { folder, database_link, receiver_link, relay: None, pids: Vec::new() }
    }

    /// Starts a relay, unless one is running.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(&mut self) {
        if self.relay.as_mut().is_some_and(Process::is_running) {
            return;
        }
        let log = File::create(self.log(self.pids.len())).expect("a log can be made");
        let mut command = Command::new(program::postbox());
        command.args(["relay", "--log-format", "json"]).current_dir(&self.folder).stdin(Stdio::null());
        command.env_remove("POSTBOX_DATABASE_URL").env("RUST_LOG", "info");
        let relay = Process::spawn({
            command.stdout(Stdio::null()).stderr(log);
            command
        });
        self.pids.push(relay.id());
        self.relay = Some(relay);
    }

    /// The relay's process.
    ///
    /// # Panics
    /// When none was started yet.
    pub fn relay(&mut self) -> &mut Process {
        self.relay.as_mut().expect("a relay was started")
    }

    /// How the relay ended, if it has; `None` while it runs, or before one was started.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.relay.as_mut().and_then(Process::end)
    }

    /// Process ids of all relays so far; the last one may be running.
    #[must_use]
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// The way to the database.
    #[must_use]
    pub fn database_link(&self) -> &Proxy {
        &self.database_link
    }

    /// The way to the receiver.
    #[must_use]
    pub fn receiver_link(&self) -> &Proxy {
        &self.receiver_link
    }

    /// What all relays of this place have logged.
    ///
    /// # Panics
    /// When a log cannot be read.
    #[must_use]
    pub fn logbook(&self) -> Logbook {
        let mut logbook = Logbook::default();
        for number in 0..self.pids.len() {
            logbook.add(&self.log(number));
        }
        logbook
    }

    /// What the relay that is there now, or was last, has logged.
    ///
    /// # Panics
    /// When its log cannot be read.
    #[must_use]
    pub fn last_logbook(&self) -> Logbook {
        let mut logbook = Logbook::default();
        if let Some(last) = self.pids.len().checked_sub(1) {
            logbook.add(&self.log(last));
        }
        logbook
    }

    fn log(&self, number: usize) -> PathBuf {
        self.folder.join(format!("relay-{number}.log"))
    }
}

/// Several places side by side. Each can be used by several tasks, a moment at a time.
#[derive(Debug)]
pub struct Fleet {
    berths: Vec<Mutex<Berth>>,
}

impl Fleet {
    /// So many places, each in a folder of its own below `folder`; no relay is started yet.
    pub async fn build(
        relays: usize,
        folder: &Path,
        stage: &Stage,
        receiver: SocketAddr,
        timing: Timing,
    ) -> Self {
        let mut berths = Vec::new();
        for number in 0..relays {
            let folder = folder.join(format!("berth-{number}"));
            berths.push(Mutex::new(Berth::build(folder, stage, receiver, timing).await));
        }
        Self { berths }
    }

    /// A place.
    ///
    /// # Panics
    /// When there is none of this number.
    pub fn berth(&self, number: usize) -> MutexGuard<'_, Berth> {
        self.berths[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every place in turn.
    pub fn berths(&self) -> impl Iterator<Item = MutexGuard<'_, Berth>> {
        (0..self.berths.len()).map(|number| self.berth(number))
    }

    /// What all relays have logged.
    #[must_use]
    pub fn logbook(&self) -> Logbook {
        let mut all = Logbook::default();
        for berth in self.berths() {
            all.append(berth.logbook());
        }
        all
    }
}
