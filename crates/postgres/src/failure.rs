//! What a database error means to the caller, decided by its SQLSTATE and never by its text.
//!
//! | SQLSTATE | kind |
//! |---|---|
//! | class 08, 53, 57; 25006 (a standby answered after a failover); no answer at all | unavailable |
//! | 40001, 40P01, 55P03 | conflict |
//! | 42P01, 42883, 42703, 3F000 | schema missing |
//! | 42501, class 28 | denied |
//! | 3D000, class 22 | input |
//! | anything else | internal |
//!
//! Source: PostgreSQL's manual, appendix A.

use postbox_core::store::{StoreError, StoreErrorKind};
use tokio_postgres::Error;

/// The kind of `error`.
pub(crate) fn kind(error: &Error) -> StoreErrorKind {
    let Some(state) = error.code() else {
        return if is_about_values(error) { StoreErrorKind::Internal } else { StoreErrorKind::Unavailable };
    };
    match state.code() {
        "25006" => StoreErrorKind::Unavailable,
        "40001" | "40P01" | "55P03" => StoreErrorKind::Conflict,
        "42P01" | "42883" | "42703" | "3F000" => StoreErrorKind::SchemaMissing,
        "42501" => StoreErrorKind::Denied,
        "3D000" => StoreErrorKind::Input,
        other => match other.get(..2) {
            Some("08" | "53" | "57") => StoreErrorKind::Unavailable,
            Some("28") => StoreErrorKind::Denied,
            Some("22") => StoreErrorKind::Input,
            _ => StoreErrorKind::Internal,
        },
    }
}

/// `error` while doing `what` (a verb phrase) on `place` (never with a password).
pub(crate) fn explain(what: &str, place: &str, error: Error) -> StoreError {
    let kind = kind(&error);
    // The database's message names objects and limits; its detail may hold values and stays in the source.
    let said = error.as_db_error().map_or_else(
        || "the connection failed".to_owned(),
        |answer| format!("{} ({})", answer.message(), answer.code().code()),
    );
    let remedy = match kind {
        StoreErrorKind::SchemaMissing => "; run `postbox migrate`",
        StoreErrorKind::Denied => "; check the database role and its grants",
        _ => "",
    };
    StoreError::caused(kind, format!("cannot {what} on {place}: {said}{remedy}"), error)
}

/// The answer when a call took longer than it may.
pub(crate) fn timed_out(what: &str, place: &str, limit: std::time::Duration) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        format!(
            "cannot {what} on {place}: no answer within {} s; the connection was given up",
            limit.as_secs()
        ),
    )
}

/// A value that could not be converted between Rust and SQL: the only failure without an answer and without I/O that
/// is not the connection's.
fn is_about_values(error: &Error) -> bool {
    use std::error::Error as _;
    error.source().is_some_and(|source| source.is::<tokio_postgres::types::WrongType>())
}
