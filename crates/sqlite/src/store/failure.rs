//! SQLite's errors as the relay and the operator understand them.

use std::path::Path;

use postbox_core::store::{StoreError, StoreErrorKind};
use rusqlite::{Connection, ErrorCode};

use crate::schema;

/// Why a piece of work on a connection failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite said so; what it means is decided in one place, by [`explain`].
    Sqlite(rusqlite::Error),
    /// Decided already.
    Store(StoreError),
}

/// Result of a piece of work on a connection.
pub(crate) type Attempt<T> = Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// Whether another connection held a lock for longer than the busy timeout; nothing was done then.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(error)
            if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)))
    }
}

/// Fails unless the tables exist in the version this program needs.
pub(crate) fn check_schema(connection: &Connection, path: &Path) -> Attempt<()> {
    let found = schema::Versions::of(connection)?;
    if found.newest() > schema::LATEST {
        return Err(newer(path, found.newest()).into());
    }
    if let Some(lack) = found.lack() {
        return Err(StoreError::new(
            StoreErrorKind::SchemaMissing,
            format!("{} {lack}: run `postbox migrate`", path.display()),
        )
        .into());
    }
    Ok(())
}

/// The tables are newer than this program.
pub(crate) fn newer(path: &Path, found: u32) -> StoreError {
    StoreError::new(
        StoreErrorKind::SchemaNewer,
        format!(
            "{} has outbox tables of version {found}, this program knows versions up to {}: \
             use the version of Postbox that migrated it",
            path.display(),
            schema::LATEST
        ),
    )
}

/// What `failure` on the database at `path` means. A statement that SQLite does not even accept is the schema's fault
/// more often than not, so that is looked at first.
pub(crate) fn explain(failure: Failure, connection: &Connection, path: &Path) -> StoreError {
    let error = match failure {
        Failure::Store(error) => return error,
        Failure::Sqlite(error) => error,
    };
    let code = error.sqlite_error_code();
    if matches!(code, Some(ErrorCode::Unknown))
        && let Err(Failure::Store(schema_error)) = check_schema(connection, path)
    {
        return schema_error;
    }
    let (kind, meaning) = meaning(code);
    StoreError::caused(kind, format!("{}: {meaning}", path.display()), error)
}

/// Kind and meaning of SQLite's error codes.
pub(crate) fn meaning(code: Option<ErrorCode>) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Denied, Input, Internal, Unavailable};
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            Unavailable,
            "another program keeps the database locked; look for a transaction that was left open",
        ),
        Some(ErrorCode::OperationInterrupted) => {
            (Unavailable, "the statement took too long and was given up")
        }
        Some(ErrorCode::CannotOpen) => (
            Unavailable,
            "the database file cannot be opened; check that it exists and may be read and written",
        ),
        Some(ErrorCode::SystemIoFailure) => (Unavailable, "the file system reported an error"),
        Some(ErrorCode::DiskFull) => (Unavailable, "the disk is full; nothing was written"),
        Some(ErrorCode::OutOfMemory) => (Unavailable, "memory ran out"),
        Some(
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied,
        ) => (Denied, "the file may not be written; the relay needs to write the file and its directory"),
        Some(ErrorCode::NotADatabase) => (Input, "the file is not a SQLite database"),
        Some(ErrorCode::DatabaseCorrupt) => {
            (Internal, "the database file is damaged; see PRAGMA integrity_check and restore a backup")
        }
        _ => (Internal, "SQLite could not do what was asked"),
    }
}
