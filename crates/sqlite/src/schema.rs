//! The tables and their versions.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior};

/// One step from a version of the tables to the next.
struct Migration {
    version: u32,
    sql: &'static str,
}

/// All steps, in order of their versions, which begin at 1 and have no gaps.
const MIGRATIONS: &[Migration] = &[Migration { version: 1, sql: include_str!("schema/0001_outbox.sql") }];

/// The version this program needs.
pub(crate) const LATEST: u32 = 1;

const _: () = assert!(MIGRATIONS[MIGRATIONS.len() - 1].version == LATEST);

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
    enter_wal_mode(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let current = current_version(&transaction)?;
    if current > LATEST {
        return Err(MigrateError::Newer { found: current });
    }
    let mut applied = Vec::new();
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > current) {
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
    let mut script = String::from("PRAGMA journal_mode = WAL;\n\nBEGIN IMMEDIATE;\n\n");
    for Migration { version, sql } in MIGRATIONS {
        script.push_str(sql);
        script.push_str(&format!("\nINSERT INTO outbox_migration (version) VALUES ({version});\n\n"));
    }
    script.push_str("COMMIT;\n");
    script
}

/// The version of the tables, 0 when there are none.
pub(crate) fn current_version(connection: &Connection) -> rusqlite::Result<u32> {
    let exists = connection
        .query_row(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'outbox_migration'",
            [],
            |_| Ok(()),
        )
        .optional()?
        .is_some();
    if !exists {
        return Ok(0);
    }
    connection.query_row("SELECT coalesce(max(version), 0) FROM outbox_migration", [], |row| row.get(0))
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

    #[test]
    fn versions_begin_at_one_and_have_no_gaps() {
        assert!(MIGRATIONS.iter().map(|migration| migration.version).eq(1..=LATEST));
    }

    #[test]
    fn migrating_again_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(migrate(&mut connection).unwrap(), [1]);
        assert!(migrate(&mut connection).unwrap().is_empty());
    }

    #[test]
    fn the_printed_script_and_the_migration_leave_the_same_database() {
        let tables = |connection: &Connection| -> Vec<String> {
            let mut statement = connection
                .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
                .unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
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
