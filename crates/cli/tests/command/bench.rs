//! A working directory with a database, and the command run in it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;

/// Waits until it is so.
#[track_caller]
pub(crate) fn eventually(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "that never came to be");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Longest time any command of these tests may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of its own in which commands run; its database is `shop.db` unless a test names another.
pub(crate) struct Bench {
    dir: TempDir,
    database_url: Option<String>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Bench {
    /// An empty directory, no database named.
    pub(crate) fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), database_url: None }
    }

    /// A directory whose commands use this database.
    pub(crate) fn on(database_url: impl Into<String>) -> Self {
        Self { database_url: Some(database_url.into()), ..Self::empty() }
    }

    /// A directory with a migrated SQLite database.
    pub(crate) fn migrated() -> Self {
        let bench = Self::on("sqlite:shop.db");
        bench.run(&["migrate"]).succeeded();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::File::create(self.path(name)).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// A configuration with one webhook that tries twice, the second time at once.
    pub(crate) fn write_destination(&self, url: &str, more: &str) {
        self.write(
            "postbox.toml",
            &format!(
                "[relay]\npoll_interval = \"20ms\"\n\n[[destination]]\nname = \"billing\"\nkind = \"webhook\"\n\
                 url = \"{url}\"\nevents = [\"order.*\"]\nretry = {{ attempts = 2, delays = [\"0s\"], jitter = 0 }}\n{more}\n"
            ),
        );
    }

    /// A configuration without destinations, whose endpoints may be on this machine.
    pub(crate) fn write_endpoints(&self, more: &str) {
        self.write(
            "postbox.toml",
            &format!(
                "[relay]\npoll_interval = \"20ms\"\n\n[endpoints]\nenabled = true\negress = [\"127.0.0.0/8\"]\n{more}\n"
            ),
        );
    }

    /// Waits until every running relay works by what the table of destinations says now.
    #[track_caller]
    pub(crate) fn wait_for_take_over(&self) {
        let version: i64 = self
            .sqlite()
            .query_row("SELECT version FROM outbox_destination_version", [], |row| row.get(0))
            .unwrap();
        self.wait_for_destinations(version);
    }

    /// Waits until every running relay works by this version of the table of destinations, or a later one.
    #[track_caller]
    pub(crate) fn wait_for_destinations(&self, version: i64) {
        let began = Instant::now();
        loop {
            let status = self.run(&["status", "--json"]).succeeded().json();
            let relays = status["relays"].as_array().unwrap();
            let current = |relay: &serde_json::Value| relay["destinations_version"].as_i64() >= Some(version);
            if !relays.is_empty() && relays.iter().all(current) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "version {version} was not taken over: {status}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postbox"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        for name in ["POSTBOX_DATABASE_URL", "RUST_LOG", "NO_COLOR", "FORCE_COLOR"] {
            command.env_remove(name);
        }
        if let Some(url) = &self.database_url {
            command.env("POSTBOX_DATABASE_URL", url);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        Ended::of(self.command(args))
    }

    /// Runs the relay until no delivery waits for another attempt: a single run leaves those that are not due yet.
    pub(crate) fn exhaust_retries(&self) {
        for _ in 0..50 {
            self.run(&["relay", "--once"]).ended_with(1);
            let status = self.run(&["status", "--json"]).succeeded().json();
            if status["destinations"][0]["retry"]["value"] == 0 {
                return;
            }
        }
        panic!("deliveries are still tried again");
    }

    /// Starts a command that keeps running; it is killed when the value goes out of scope.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        let log = std::fs::File::create(self.path("stderr.log")).unwrap();
        Running { child: command.stdout(Stdio::piped()).stderr(log).spawn().unwrap() }
    }

    /// Waits until the command that was started has logged `text`.
    pub(crate) fn wait_for_log(&self, text: &str) {
        eventually(|| self.log().contains(text));
    }

    /// What the command that was started has written to standard error so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("stderr.log")).unwrap()
    }

    /// Waits until this many relays are members: from then on they also answer signals.
    pub(crate) fn wait_for_relays(&self, count: usize) {
        let began = Instant::now();
        while self.run(&["status", "--json"]).succeeded().json()["relays"].as_array().unwrap().len() != count
        {
            assert!(began.elapsed() < PATIENCE, "there were never {count} relays");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a PostgreSQL database answers `query` with `wanted`.
    #[track_caller]
    pub(crate) fn wait_for_sql(
        database: &postbox_testkit::postgres::Database<'_>,
        query: &str,
        wanted: &str,
    ) {
        let began = Instant::now();
        loop {
            let found = database.sql(query);
            if found.trim() == wanted {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{query} gives {found}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The SQLite database itself, as a producer has it.
    pub(crate) fn sqlite(&self) -> Connection {
        let connection = Connection::open(self.path("shop.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    /// Writes one event and tells its id.
    pub(crate) fn produce(&self, aggregate_id: &str, event_type: &str) -> String {
        let event_id = uuid::Uuid::now_v7().to_string();
        self.sqlite()
            .execute(
                "INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
                 VALUES (?1, 'order', ?2, ?3, '{\"total\": 12}')",
                [&event_id, aggregate_id, event_type],
            )
            .unwrap();
        event_id
    }
}

impl Ended {
    /// Runs `command` to its end.
    pub(crate) fn of(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self::from_output(child.wait_with_output().unwrap())
    }

    fn from_output(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        self.ended_with(0)
    }

    #[track_caller]
    pub(crate) fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Standard output holds each of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.out.contains(part), "no {part:?} in stdout:\n{}\nstderr:\n{}", self.out, self.err);
        }
        self
    }

    /// Standard error holds each of these.
    #[track_caller]
    pub(crate) fn complains(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.err.contains(part), "no {part:?} in stderr:\n{}\nstdout:\n{}", self.err, self.out);
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.out, self.err))
    }
}

/// A command that is running.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Memory that it has in use at present, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Its exit code, once it has ended.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "the command did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
