//! The folder in which everything happens: the database, the relay's configuration and its log.

use std::fs::{File, OpenOptions};
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

    /// Writes the configuration of a WhatsApp number, whose short waits suit an audience, and these secrets, each in a file of
    /// its own; and makes the shop's table.
    ///
    /// # Errors
    /// When a file or the table cannot be written.
    pub(super) fn configure_whatsapp(
        &self,
        base_url: &str,
        secrets: [(&str, &str); 3],
    ) -> Result<(), Problem> {
        let text = format!(
            "[database]\nurl = \"sqlite:shop.db\"\n\n\
             [relay]\npoll_interval = \"20ms\"\nlease_ttl = \"{}s\"\nunrouted = \"skip\"\n\n\
             [[destination]]\nname = \"shop\"\nkind = \"whatsapp\"\nphone_number_id = \"106540352242922\"\n\
             base_url = \"{base_url}\"\ntoken = {{ file = \"token\" }}\ntimeout = \"1s\"\nevidence_wait = \"2s\"\n",
            LEASE.as_secs()
        );
        let broken = "the configuration cannot be written";
        std::fs::write(self.configuration(), text).map_err(Problem::because(broken))?;
        for (name, secret) in secrets {
            std::fs::write(self.folder().join(name), secret).map_err(Problem::because(broken))?;
        }
        self.connect()?
            .execute_batch("CREATE TABLE purchases (id INTEGER PRIMARY KEY, buyer TEXT NOT NULL) STRICT")
            .map_err(Problem::because("the shop's table cannot be made"))
    }

    /// The log that all commands write.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn open_log(&self) -> Result<File, Problem> {
        let log = OpenOptions::new().create(true).append(true).open(self.relay_log());
        log.map_err(Problem::because("the relay's log cannot be written"))
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
