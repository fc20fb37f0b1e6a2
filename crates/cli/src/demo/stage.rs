//! The folder in which everything happens: the database, the relay's configuration and its log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::problem::Problem;

/// A folder that is removed in the end, unless it is kept.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    /// A new folder with a migrated database, in which the shop has its table.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    pub(crate) fn build() -> Result<Self, Problem> {
        let folder = tempfile::Builder::new()
            .prefix("postbox-demo-")
            .tempdir()
            .map_err(Problem::because("a temporary folder cannot be made"))?;
        let stage = Self { folder };
        let mut connection = stage.connect()?;
        postbox_sqlite::migrate(&mut connection)
            .map_err(Problem::because("the outbox tables cannot be made"))?;
        connection
            .execute_batch(include_str!("shop.sql"))
            .map_err(Problem::because("the shop's table cannot be made"))?;
        Ok(stage)
    }

    /// A connection as a program has it that shares its database with the relay.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn connect(&self) -> Result<Connection, Problem> {
        connect(&self.database()).map_err(Problem::because("the demo's database cannot be opened"))
    }

    pub(super) fn database(&self) -> PathBuf {
        self.folder.path().join("shop.db")
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn configuration(&self) -> PathBuf {
        self.folder.path().join("postbox.toml")
    }

    pub(super) fn relay_log(&self) -> PathBuf {
        self.folder.path().join("relay.log")
    }

    /// Writes the relay's configuration: one webhook, and waits that are short enough for an audience.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn configure(&self, receiver_url: &str) -> Result<(), Problem> {
        let text = format!(
            "[database]\nurl = \"sqlite:shop.db\"\n\n\
             [relay]\npoll_interval = \"20ms\"\nlease_ttl = \"{}s\"\n\n\
             [[destination]]\nname = \"warehouse\"\nkind = \"webhook\"\nurl = \"{receiver_url}\"\n\
             events = [\"order.*\"]\ntimeout = \"1s\"\n\
             retry = {{ attempts = 20, delays = [\"50ms\", \"100ms\", \"200ms\", \"400ms\"], jitter = 0.2 }}\n",
            LEASE.as_secs()
        );
        std::fs::write(self.configuration(), text)
            .map_err(Problem::because("the configuration cannot be written"))
    }

    /// The last lines that the relays logged.
    pub(super) fn end_of_relay_log(&self) -> String {
        let text = std::fs::read_to_string(self.relay_log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    /// Leaves the folder in place.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// How long the relay's lease lasts: so long does its successor wait after a kill.
pub(super) const LEASE: Duration = Duration::from_secs(2);

pub(super) fn connect(database: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(database)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    // A commit that survives the death of any process, though not a power cut: the demo kills, it does not pull plugs.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}
