//! Opening the database file.

use std::path::Path;
use std::time::Duration;

use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};
use rusqlite::{Connection, OpenFlags};

use super::failure::meaning;

/// How long SQLite itself waits for another connection's lock before it says "busy".
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Statements kept prepared per connection; more than the store has.
const CACHED_STATEMENTS: usize = 64;

/// Whether a missing file is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Create,
    Refuse,
}

/// Opens the file at `path` for the relay or an operator.
pub(crate) fn open(path: &Path, missing: Missing) -> StoreResult<Connection> {
    explain_missing(path, missing)?;
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, missing == Missing::Create);
    Connection::open_with_flags(path, flags).and_then(prepare).map_err(|error| {
        let (kind, meaning) = meaning(error.sqlite_error_code());
        StoreError::caused(kind, format!("{}: {meaning}", path.display()), error)
    })
}

fn prepare(connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // What was settled must survive a power cut: in WAL mode only FULL waits for the disk at every commit.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;")?;
    // Reads the file, so that one that is no database is noticed here.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// SQLite says "unable to open database file" whatever the reason; the file system knows more.
fn explain_missing(path: &Path, missing: Missing) -> StoreResult<()> {
    if path.is_dir() {
        return Err(StoreError::new(
            StoreErrorKind::Input,
            format!("{} is a directory, not a database file", path.display()),
        ));
    }
    if path.exists() {
        return Ok(());
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        return Err(StoreError::new(
            StoreErrorKind::Input,
            format!(
                "{} cannot be opened: the directory {} does not exist",
                path.display(),
                directory.display()
            ),
        ));
    }
    if missing == Missing::Refuse {
        return Err(StoreError::new(
            StoreErrorKind::SchemaMissing,
            format!(
                "{} does not exist: correct the path, or run `postbox migrate` to create it",
                path.display()
            ),
        ));
    }
    Ok(())
}
