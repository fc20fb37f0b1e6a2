//! One private cluster.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::binaries::{self, Account};
use super::database::Database;
use super::watchdog::Watchdog;

/// Name of the superuser; connections need no password.
pub(super) const SUPERUSER: &str = "postgres";

/// How a cluster is set up.
#[derive(Debug, Clone, Default)]
pub struct ClusterOptions {
    durable: bool,
    settings: Vec<(String, String)>,
}

impl ClusterOptions {
    /// A cluster that is fast and forgets on a crash of the machine (not on a crash of the server).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes through to the disk, as a production server does: for benchmarks.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Adds a line to `postgresql.conf`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A PostgreSQL server of our own in a temporary folder, on a free port of 127.0.0.1 and a Unix socket in its folder.
///
/// Dropping it stops the server and removes the folder; so does the end of this process, even by SIGKILL.
/// `wal_level` is `logical`, and two-phase commit is enabled.
#[derive(Debug)]
pub struct PgCluster {
    // Declared first so that nothing of the cluster outlives it.
    _watchdog: Watchdog,
    programs: PathBuf,
    folder: PathBuf,
    account: Option<Account>,
    port: u16,
    databases: AtomicU32,
}

impl PgCluster {
    /// The cluster that all tests of this test binary share; give each test a [`Self::database`] of its own.
    ///
    /// # Panics
    /// When PostgreSQL's server is not installed, with one line that says what to install.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PgCluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start_new(&ClusterOptions::new()))
    }

    /// A cluster for one test, which may stop it.
    ///
    /// # Panics
    /// When PostgreSQL's server is not installed or does not start, with what it said.
    #[must_use]
    pub fn start_new(options: &ClusterOptions) -> Self {
        let programs = binaries::find();
        let account = Account::needed();
        let folder = tempfile::Builder::new()
            .prefix("postbox-pg-")
            .tempdir()
            .expect("a temporary folder can be made")
            .keep();
        if let Some(Account { uid, gid }) = account {
            chown(&folder, Some(uid), Some(gid)).expect("root can give a folder away");
        }
        let watchdog = Watchdog::start(&programs.join("pg_ctl"), &folder, account);
        let mut cluster =
            Self { _watchdog: watchdog, programs, folder, account, port: 0, databases: AtomicU32::new(0) };
        cluster.initialise(options);
        cluster.start_on_a_free_port();
        cluster
    }

    fn initialise(&self, options: &ClusterOptions) {
        let mut initdb = self.program("initdb");
        initdb.arg("-D").arg(self.data()).args(["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale"]);
        if !options.durable {
            initdb.arg("--no-sync");
        }
        expect_success("initdb", &initdb.output().expect("initdb can be started"), None);

        let mut lines = format!(
            "listen_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nmax_connections = 200\n\
             wal_level = logical\nmax_prepared_transactions = 20\nlog_min_messages = warning\n",
            self.folder.display()
        );
        if !options.durable {
            lines.push_str("fsync = off\nfull_page_writes = off\n");
        }
        for (name, value) in &options.settings {
            let _ = writeln!(lines, "{name} = '{}'", value.replace('\'', "''"));
        }
        let path = self.data().join("postgresql.conf");
        let mut conf = std::fs::read_to_string(&path).expect("initdb wrote postgresql.conf");
        conf.push_str(&lines);
        std::fs::write(&path, conf).expect("postgresql.conf can be written");
    }

    /// Between the moment a port is found free and the server binds it, someone else may take it.
    fn start_on_a_free_port(&mut self) {
        for _ in 0..10 {
            self.port = free_port();
            if self.pg_ctl_start().status.success() {
                return;
            }
        }
        self.start();
    }

    /// Starts the server again after [`Self::stop`], on the same port.
    pub fn start(&self) {
        expect_success("pg_ctl start", &self.pg_ctl_start(), Some(&self.log()));
    }

    /// Stops the server: clients are disconnected, work in progress is rolled back.
    pub fn stop(&self) {
        let output = self.pg_ctl(&["-m", "fast", "-w", "stop"]);
        expect_success("pg_ctl stop", &output, Some(&self.log()));
    }

    /// Stops the server without any cleaning up, as a crash does, and starts it again; it recovers from its log.
    pub fn restart_immediate(&self) {
        let output = self.pg_ctl(&["-m", "immediate", "-w", "stop"]);
        expect_success("pg_ctl stop", &output, Some(&self.log()));
        self.start();
    }

    /// A fresh, empty database.
    pub fn database(&self) -> Database<'_> {
        self.database_from("template0")
    }

    /// A fresh copy of the database `template`, to which nobody may be connected.
    pub fn database_from(&self, template: &str) -> Database<'_> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        Database::new(self, name)
    }

    /// Runs SQL statements as superuser and returns what `psql` printed, columns divided by `|`.
    ///
    /// # Panics
    /// When a statement fails, with the server's message.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let output = self.psql(database, statements);
        expect_success("psql", &output, None);
        String::from_utf8(output.stdout).expect("psql writes UTF-8").trim_end().to_owned()
    }

    pub(super) fn psql(&self, database: &str, statements: &str) -> Output {
        self.program("psql")
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", SUPERUSER, "-d", database])
            .arg("-h")
            .arg(&self.folder)
            .args(["-p", &self.port.to_string(), "-c", statements])
            .output()
            .expect("psql can be started")
    }

    /// Connection URL of `database`, as superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Folder of the Unix socket.
    #[must_use]
    pub fn socket_folder(&self) -> &Path {
        &self.folder
    }

    /// A file with everything the server logged.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Process id of the server's parent process, while it runs.
    #[must_use]
    pub fn server_pid(&self) -> Option<u32> {
        std::fs::read_to_string(self.data().join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn pg_ctl_start(&self) -> Output {
        let log = self.log();
        let port = format!("-p {}", self.port);
        self.pg_ctl(&[
            "-l",
            log.to_str().expect("temporary folders are UTF-8"),
            "-o",
            &port,
            "-w",
            "-t",
            "60",
            "start",
        ])
    }

    fn pg_ctl(&self, arguments: &[&str]) -> Output {
        self.program("pg_ctl")
            .arg("-D")
            .arg(self.data())
            .args(arguments)
            .output()
            .expect("pg_ctl can be started")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        // The server's account cannot enter every folder that tests are started in.
        command.current_dir(&self.folder).env_remove("PGOPTIONS").env_remove("PGDATA");
        if let Some(Account { uid, gid }) = self.account {
            command.uid(uid).gid(gid);
        }
        command
    }
}

/// A port below the range from which the kernel takes ports for outgoing connections, so that a stopped server finds
/// its port still free.
fn free_port() -> u16 {
    const FIRST: u64 = 18_000;
    const COUNT: u64 = 14_000;
    for round in 0..200_u64 {
        let dice = RandomState::new().hash_one(round);
        let port = u16::try_from(FIRST + dice % COUNT).expect("the range ends below 65,536");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port found on 127.0.0.1")
}

fn expect_success(program: &str, output: &Output, log: Option<&Path>) {
    if output.status.success() {
        return;
    }
    let log = log.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    panic!(
        "{program} failed ({}): {}{}{log}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end(),
        if log.is_empty() { "" } else { "\nserver log:\n" },
    );
}
