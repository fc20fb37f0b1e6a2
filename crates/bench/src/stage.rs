//! What every case stands on: a private, durable PostgreSQL, and a runtime for the benchmark's own connections.

use std::time::{Duration, Instant};

use postbox_testkit::postgres::{ClusterOptions, Database, PgCluster};
use serde::Serialize;
use tokio_postgres::{Client, NoTls};

use crate::Outcome;
use crate::process;

/// The benchmark's server. Everything that decides durability is as a production server has it; checkpoints are kept
/// out of the samples, so that no sample pays for the pages of another.
pub(crate) struct Stage {
    cluster: PgCluster,
    pub(crate) rounds: u32,
}

/// Under which conditions figures were taken.
#[derive(Debug, Serialize)]
pub(crate) struct Conditions {
    processor: String,
    cores: usize,
    kernel: String,
    server: String,
    /// What nothing that waits for its commit can surpass on one connection.
    commits_per_second: f64,
    rounds: u32,
}

impl Stage {
    /// Starts the server.
    pub(crate) fn set(rounds: u32) -> Self {
        let options = ClusterOptions::new()
            .durable()
            .setting("synchronous_commit", "on")
            .setting("wal_level", "replica")
            .setting("shared_buffers", "512MB")
            .setting("max_wal_size", "8GB")
            .setting("checkpoint_timeout", "1h")
            .setting("jit", "off");
        Self { cluster: PgCluster::start_new(&options), rounds }
    }

    /// A fresh, empty database.
    pub(crate) fn database(&self) -> Database<'_> {
        self.cluster.database()
    }

    /// Ends everything that earlier samples left to be done later.
    pub(crate) fn settle_down(&self) {
        self.cluster.sql("postgres", "CHECKPOINT");
    }

    /// Runs `work` and tells what it cost the database.
    pub(crate) fn watch<T>(&self, work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, DatabaseCost)> {
        let server = self.cluster.server_pid().ok_or("the server does not run")?;
        let wal_before = self.wal_bytes()?;
        let cpu_before = process::tree_cpu_seconds(server)?;
        let result = work()?;
        let cpu_seconds = process::tree_cpu_seconds(server)? - cpu_before;
        Ok((result, DatabaseCost { cpu_seconds, wal_bytes: self.wal_bytes()? - wal_before }))
    }

    fn wal_bytes(&self) -> Outcome<f64> {
        Ok(self.cluster.sql("postgres", "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')").parse()?)
    }

    /// Reads the conditions of this machine and this server.
    pub(crate) fn conditions(&self) -> Outcome<Conditions> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| Some(line.strip_prefix("model name")?.split_once(": ")?.1.to_owned()))
            .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let database = self.database();
        Ok(Conditions {
            processor,
            cores: std::thread::available_parallelism()?.get(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            server: database.sql("SHOW server_version"),
            commits_per_second: block_on(commits_per_second(&database.url()))?,
            rounds: self.rounds,
        })
    }
}

impl Conditions {
    pub(crate) fn print(&self) {
        println!(
            "{} cores ({}), Linux {}, PostgreSQL {}: {:.0} durable commits/s on one connection. {} rounds.",
            self.cores, self.processor, self.kernel, self.server, self.commits_per_second, self.rounds
        );
    }
}

/// What something cost the database, all its processes together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseCost {
    pub(crate) cpu_seconds: f64,
    pub(crate) wal_bytes: f64,
}

/// Runs a future of the benchmark itself to its end on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// Opens a connection; it ends with the client.
pub(crate) async fn connect(url: &str) -> Outcome<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Its failure shows in the client's next call.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// The smallest transaction that has something to commit, again and again.
async fn commits_per_second(url: &str) -> Outcome<f64> {
    let client = connect(url).await?;
    client.batch_execute("CREATE TABLE small (n integer); INSERT INTO small VALUES (0)").await?;
    let write = client.prepare("UPDATE small SET n = n + 1").await?;
    let began = Instant::now();
    let mut commits = 0_u32;
    while began.elapsed() < Duration::from_secs(1) {
        client.execute(&write, &[]).await?;
        commits += 1;
    }
    Ok(f64::from(commits) / began.elapsed().as_secs_f64())
}
