//! The tables and their versions.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior};

/// One step of the tables' history.
struct Migration {
    version: u32,
    part: Part,
    sql: &'static str,
}

/// What a step is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The producer's and the relay's half.
    Outbox,
    /// The consumer's half. Needs nothing of the other one, since it may be in a file of its own.
    Inbox,
}

/// What a database is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    Everything,
    InboxOnly,
}

impl Contents {
    fn migrations(self) -> impl Iterator<Item = &'static Migration> {
        MIGRATIONS.iter().filter(move |migration| self == Self::Everything || migration.part == Part::Inbox)
    }
}

/// All steps, in order of their versions, which begin at 1 and have no gaps.
const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, part: Part::Outbox, sql: include_str!("schema/0001_outbox.sql") },
    Migration { version: 2, part: Part::Inbox, sql: include_str!("schema/0002_consuming.sql") },
    Migration { version: 3, part: Part::Outbox, sql: include_str!("schema/0003_destinations.sql") },
    Migration { version: 4, part: Part::Outbox, sql: include_str!("schema/0004_reports.sql") },
];

/// The newest version that this program knows.
pub(crate) const LATEST: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// How long a migration waits for other programs that use the file.
const LOCK_WAIT: Duration = Duration::from_secs(20);

/// Why the tables could not be created or upgraded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A newer version of Postbox migrated this database.
    #[error(
        "the outbox tables have version {found}, this program knows versions up to {LATEST}: \
         use the version of Postbox that migrated this database"
    )]
    Newer {
        /// The version found.
        found: u32,
    },
    /// SQLite could not do it; nothing was changed.
    #[error("the outbox tables could not be created or upgraded; nothing was changed")]
    Sqlite(#[from] rusqlite::Error),
}

/// Creates or upgrades the tables and returns the versions that were applied, none when nothing was left to do.
///
/// All steps are one transaction. Two that run at once wait for each other. The file is switched to WAL mode for good,
/// so that producers and the relay do not wait for readers.
///
/// # Errors
/// [`MigrateError::Newer`] when a newer version migrated this database; otherwise SQLite's error.
pub fn migrate(connection: &mut Connection) -> Result<Vec<u32>, MigrateError> {
    apply(connection, Contents::Everything)
}

/// The same for a consumer's own file: the inbox and nothing else.
///
/// # Errors
/// As [`migrate`].
pub fn migrate_inbox(connection: &mut Connection) -> Result<Vec<u32>, MigrateError> {
    apply(connection, Contents::InboxOnly)
}

pub(crate) fn apply(connection: &mut Connection, contents: Contents) -> Result<Vec<u32>, MigrateError> {
    enter_wal_mode(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = Versions::of(&transaction)?;
    if found.newest() > LATEST {
        return Err(MigrateError::Newer { found: found.newest() });
    }
    let mut applied = Vec::new();
    for migration in contents.migrations().filter(|migration| !found.has(migration)) {
        transaction.execute_batch(migration.sql)?;
        transaction.execute("INSERT INTO outbox_migration (version) VALUES (?1)", [migration.version])?;
        applied.push(migration.version);
    }
    transaction.commit()?;
    Ok(applied)
}

/// All steps as one script for an empty database, for people who run their own migration tool.
///
/// It records its versions as [`migrate`] does, so that both can be used on one database.
#[must_use]
pub fn migration_sql() -> String {
    script(Contents::Everything)
}

/// The same for a consumer's own file: the inbox and nothing else.
#[must_use]
pub fn inbox_migration_sql() -> String {
    script(Contents::InboxOnly)
}

fn script(contents: Contents) -> String {
    let mut script = String::from("PRAGMA journal_mode = WAL;\n\nBEGIN IMMEDIATE;\n\n");
    for Migration { version, sql, .. } in contents.migrations() {
        script.push_str(sql);
        script.push_str(&format!("\nINSERT INTO outbox_migration (version) VALUES ({version});\n\n"));
    }
    script.push_str("COMMIT;\n");
    script
}

/// The versions that were applied to a database.
pub(crate) struct Versions(Vec<u32>);

impl Versions {
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let tables = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'outbox_migration'";
        if connection.query_row(tables, [], |_| Ok(())).optional()?.is_none() {
            return Ok(Self(Vec::new()));
        }
        let mut statement = connection.prepare("SELECT version FROM outbox_migration")?;
        let versions = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(Self(versions))
    }

    pub(crate) fn newest(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(0)
    }

    /// What this program needs for an outbox and does not find, in words; `None` when it is all there.
    #[cfg(feature = "store")]
    pub(crate) fn lack(&self) -> Option<String> {
        let missing = Contents::Everything.migrations().find(|migration| !self.has(migration))?;
        Some(if self.0.is_empty() {
            "has no outbox tables".to_owned()
        } else if MIGRATIONS.iter().any(|known| known.part == Part::Outbox && self.has(known)) {
            format!("has outbox tables without version {}", missing.version)
        } else {
            "has no outbox tables, only an inbox".to_owned()
        })
    }

    fn has(&self, migration: &Migration) -> bool {
        self.0.contains(&migration.version)
    }
}

/// Switches the file to WAL mode. SQLite answers "busy" at once, without waiting, when somebody else uses the file.
fn enter_wal_mode(connection: &Connection) -> rusqlite::Result<()> {
    let give_up_at = Instant::now() + LOCK_WAIT;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < give_up_at =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the database is made of, in order of name. `IF NOT EXISTS` is no part of it.
    fn tables(connection: &Connection) -> Vec<String> {
        let mut statement =
            connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn versions_begin_at_one_and_have_no_gaps() {
        assert!(MIGRATIONS.iter().map(|migration| migration.version).eq(1..=LATEST));
    }

    #[test]
    fn migrating_again_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(migrate(&mut connection).unwrap().into_iter().eq(1..=LATEST));
        assert!(migrate(&mut connection).unwrap().is_empty());
    }

    #[test]
    fn an_inbox_alone_can_become_everything() {
        let (mut grown, mut whole) =
            (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        assert_eq!(migrate_inbox(&mut grown).unwrap(), [2]);
        assert!(tables(&grown).iter().all(|sql| !sql.contains("TABLE outbox (")));
        assert_eq!(migrate(&mut grown).unwrap(), [1, 3, 4]);
        migrate(&mut whole).unwrap();
        assert!(migrate_inbox(&mut whole).unwrap().is_empty());
        assert_eq!(tables(&grown), tables(&whole));
    }

    #[test]
    fn the_printed_inbox_is_the_migrated_one() {
        let mut migrated = Connection::open_in_memory().unwrap();
        migrate_inbox(&mut migrated).unwrap();
        let mut scripted = Connection::open_in_memory().unwrap();
        scripted.execute_batch(&inbox_migration_sql()).unwrap();
        assert_eq!(tables(&migrated), tables(&scripted));
        assert!(migrate_inbox(&mut scripted).unwrap().is_empty());
    }

    #[test]
    fn the_printed_script_and_the_migration_leave_the_same_database() {
        let mut migrated = Connection::open_in_memory().unwrap();
        migrate(&mut migrated).unwrap();
        let mut scripted = Connection::open_in_memory().unwrap();
        scripted.execute_batch(&migration_sql()).unwrap();
        assert_eq!(tables(&migrated), tables(&scripted));
        assert!(migrate(&mut scripted).unwrap().is_empty());
    }

    #[test]
    fn a_database_of_a_newer_version_is_refused_and_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection.execute("INSERT INTO outbox_migration (version) VALUES (?1)", [LATEST + 7]).unwrap();
        assert!(
            matches!(migrate(&mut connection), Err(MigrateError::Newer { found }) if found == LATEST + 7)
        );
    }
}
