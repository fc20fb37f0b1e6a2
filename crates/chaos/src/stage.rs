//! A private PostgreSQL with a migrated database, in which evictions leave a trace.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;

use postbox_testkit::postgres::{ClusterOptions, PgCluster};

use crate::clock::Micros;
use crate::program;

/// A relay that lost its lease while it had one.
#[derive(Debug, Clone)]
pub(crate) struct Eviction {
    /// Process id of the relay.
    pub(crate) pid: u32,
    pub(crate) at: Micros,
}

/// The database.
#[derive(Debug, Clone)]
pub struct Stage {
    cluster: Arc<PgCluster>,
    database: String,
}

impl Stage {
    /// Starts a cluster and migrates a database in it.
    ///
    /// # Panics
    /// When PostgreSQL's server is not installed, or `postbox migrate` fails.
    #[must_use]
    pub fn build() -> Self {
        let cluster = Arc::new(PgCluster::start_new(&ClusterOptions::new()));
        let database = cluster.database().keep();
        let stage = Self { cluster, database };
        let mut migrate = Command::new(program::postbox());
        migrate.args(["migrate", "--database-url", &stage.url()]).stdout(Stdio::null());
        assert!(migrate.status().expect("postbox can be started").success(), "postbox migrate failed");
        stage.sql(include_str!("stage.sql"));
        stage
    }

    /// How to reach the database directly.
    #[must_use]
    pub fn url(&self) -> String {
        self.cluster.url(&self.database)
    }

    /// How to reach it through whatever listens on `port`.
    #[must_use]
    pub fn url_through(&self, port: u16) -> String {
        self.url().replace(&format!(":{}/", self.cluster.port()), &format!(":{port}/"))
    }

    /// Where the database listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.cluster.port()).into()
    }

    /// Runs statements as `psql` does and returns what it printed.
    ///
    /// # Panics
    /// When a statement fails.
    #[must_use]
    pub fn query(&self, statements: &str) -> String {
        self.cluster.sql(&self.database, statements)
    }

    /// As [`Self::query`], for what prints nothing of interest.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn sql(&self, statements: &str) {
        let _ = self.query(statements);
    }

    /// The number that `query` gives.
    ///
    /// # Panics
    /// When it fails or gives none.
    #[must_use]
    pub fn number(&self, query: &str) -> usize {
        let text = self.query(query);
        text.trim().parse().unwrap_or_else(|_| panic!("{query} gave {text:?}"))
    }

    /// Deliveries and events that are not finished.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.number("SELECT pending + struggling FROM outbox_health")
    }

    /// Crashes the server and starts it again.
    ///
    /// # Panics
    /// When it does not come back.
    pub fn crash_and_recover(&self) {
        self.cluster.restart_immediate();
    }

    pub(crate) fn evictions(&self) -> Vec<Eviction> {
        let rows = self.query(
            "SELECT substring(label FROM '[0-9]+$'), (extract(epoch FROM at) * 1000000)::bigint
             FROM chaos_eviction ORDER BY at",
        );
        let eviction = |row: &str| {
            let (pid, at) = row.split_once('|')?;
            Some(Eviction { pid: pid.parse().ok()?, at: at.parse().ok()? })
        };
        rows.lines().map(|row| eviction(row).expect("a process id and a time")).collect()
    }
}
