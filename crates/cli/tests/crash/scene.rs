//! A migrated database, a configuration, and relays on it.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use postbox_testkit::postgres::{Database, PgCluster};
use postbox_testkit::process::Process;
use tempfile::TempDir;

/// How a scene's relays work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) lease: Duration,
    pub(crate) attempt: Duration,
    pub(crate) retry: Duration,
}

impl Default for Timing {
    /// A lease that no test waits for.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            attempt: Duration::from_secs(30),
            retry: Duration::from_millis(50),
        }
    }
}

pub(crate) struct Scene<'a> {
    folder: TempDir,
    database: Database<'a>,
}

impl<'a> Scene<'a> {
    /// A fresh database of `cluster` with the tables, and a configuration that sends everything to `url`.
    pub(crate) fn set(cluster: &'a PgCluster, url: &str, timing: Timing) -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap(), database: cluster.database() };
        let Timing { lease, attempt, retry } = timing;
        let configuration = format!(
            "[database]\nurl = \"{}\"\n[relay]\npoll_interval = \"20ms\"\nlease_ttl = \"{}ms\"\n\
             [[destination]]\nname = \"receiver\"\nkind = \"webhook\"\nurl = \"{url}\"\nconcurrency = {CONCURRENCY}\n\
             timeout = \"{}ms\"\nretry = {{ attempts = 100, delays = [\"{}ms\"], jitter = 0.5 }}\n",
            scene.database.url(),
            lease.as_millis(),
            attempt.as_millis(),
            retry.as_millis(),
        );
        std::fs::write(scene.folder.path().join("postbox.toml"), configuration).unwrap();
        assert!(scene.postbox(&["migrate"]).stdout(Stdio::null()).status().unwrap().success());
        scene
    }

    fn postbox(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postbox"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("POSTBOX_DATABASE_URL").env_remove("RUST_LOG");
        command
    }

    /// Starts `postbox relay`.
    pub(crate) fn relay(&self, arguments: &[&str]) -> Process {
        let mut command = self.postbox(&["relay"]);
        let log = OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        command.args(arguments).stdout(Stdio::null()).stderr(log);
        Process::spawn(command)
    }

    /// What `postbox reconcile` makes of the ids that the receiver has confirmed, in this order. Nothing may be missing.
    pub(crate) fn reconcile(&self, confirmed: &[uuid::Uuid]) -> serde_json::Value {
        let ids: String = confirmed.iter().map(|id| format!("{id}\n")).collect();
        std::fs::write(self.folder.path().join("confirmed"), ids).unwrap();
        let output = self.postbox(&["reconcile", "--ids", "confirmed", "--json"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        report["destinations"][0].clone()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("relay.log")
    }

    /// What all relays of this scene have logged.
    pub(crate) fn logged(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    pub(crate) fn sql(&self, statements: &str) -> String {
        self.database.sql(statements)
    }

    pub(crate) fn number(&self, query: &str) -> usize {
        let text = self.sql(query);
        text.trim().parse().unwrap_or_else(|_| panic!("{query} gave {text:?}"))
    }

    /// Commits `count` events of one aggregate.
    pub(crate) fn produce(&self, aggregate: &str, count: usize) {
        self.sql(&format!(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             SELECT 'account', '{aggregate}', 'account.changed', '{{}}' FROM generate_series(1, {count})"
        ));
    }

    /// Commits one event for each of `count` aggregates.
    pub(crate) fn produce_widely(&self, count: usize) {
        self.sql(&format!(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             SELECT 'account', 'wide-' || n, 'account.changed', '{{}}' FROM generate_series(1, {count}) AS n"
        ));
    }

    pub(crate) fn delivered(&self) -> usize {
        self.number("SELECT count(*) FROM outbox_delivery WHERE state = 'delivered'")
    }

    /// Waits until nothing is left to do.
    #[track_caller]
    pub(crate) fn drained(&self) {
        let began = std::time::Instant::now();
        while self.sql("SELECT pending + struggling FROM outbox_health").trim() != "0" {
            assert!(began.elapsed() < PATIENCE, "not everything is delivered; {}", self.diagnosis());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where things stand, and the end of the relays' log.
    fn diagnosis(&self) -> String {
        let status = self.postbox(&["status"]).output().unwrap();
        let log = self.logged();
        let lines: Vec<&str> = log.lines().collect();
        let end = lines[lines.len().saturating_sub(30)..].join("\n");
        format!("status:\n{}\nlog:\n{end}", String::from_utf8_lossy(&status.stdout))
    }
}

/// Longest time until everything is delivered.
const PATIENCE: Duration = Duration::from_secs(90);

/// Attempts in flight at once.
pub(crate) const CONCURRENCY: usize = 16;
