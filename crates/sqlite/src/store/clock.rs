//! Moments and durations as SQLite keeps them: whole milliseconds.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row};

/// Milliseconds since 1970-01-01 UTC.
pub(crate) type Millis = i64;

/// The database's clock.
pub(crate) fn now(connection: &Connection) -> rusqlite::Result<Millis> {
    connection
        .prepare_cached("SELECT CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)")?
        .query_row([], |row| row.get(0))
}

/// How long from `now` until `at`; zero when that has passed.
pub(crate) fn until(at: Millis, now: Millis) -> Duration {
    Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0))
}

/// The moment `wait` after `now`, rounded up so that nothing happens early.
pub(crate) fn after(now: Millis, wait: Duration) -> Millis {
    now.saturating_add(i64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX))
}

/// The stored moment in `column` as a timestamp.
pub(crate) fn timestamp(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    to_timestamp(row.get(column)?)
}

/// Like [`timestamp`], for a column that may be NULL.
pub(crate) fn optional_timestamp(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    row.get::<_, Option<Millis>>(column)?.map(to_timestamp).transpose()
}

/// `millis` as a timestamp.
pub(crate) fn to_timestamp(millis: Millis) -> rusqlite::Result<Timestamp> {
    Timestamp::from_millisecond(millis)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Integer, Box::new(error)))
}

/// A bound on a stored moment, rounded up: `>=` and `<` then hold for the same rows as with its full precision.
pub(crate) fn bound(at: Timestamp) -> Millis {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) != 0))
        .unwrap_or(i64::MAX)
}
