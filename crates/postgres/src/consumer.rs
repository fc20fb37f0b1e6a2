//! Accepting an event in the caller's own transaction, next to what the event makes it do.
//!
//! Every function here takes the driver's *transaction*. A pool, a client or a bare connection is refused by the
//! compiler: an id that commits without its effect, or the reverse, is what an inbox exists to avoid.

#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(feature = "tokio-postgres")]
pub mod tokio_postgres;

use postbox_core::inbox::{Acceptance, Place, Succession};

use crate::schema::prefix;

/// Why it is not known whether the event is new. The transaction cannot be used further, except after a rollback to a
/// savepoint.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// Another transaction got in between (SQLSTATE 40001 or 40P01): roll back and run the whole transaction again. In
    /// READ COMMITTED only a deadlock does this; in REPEATABLE READ and SERIALIZABLE every duplicate that came at the
    /// same time.
    #[error("a conflict with another transaction: run the transaction again")]
    Conflict(#[source] DriverError),
    /// The consumer's name or the place of the event breaks a rule of the inbox.
    #[error("the inbox refused it: {message}")]
    Refused {
        /// What is wrong, in the database's words.
        message: String,
        /// The driver's error.
        #[source]
        source: DriverError,
    },
    /// The tables are not where the connection looks for them: run `postbox migrate --inbox`, or name the schema.
    #[error("the inbox was not found: run `postbox migrate --inbox`, or name its schema")]
    SchemaMissing(#[source] DriverError),
    /// Anything else the driver reports, or an answer that this version does not know.
    #[error("the inbox could not be asked")]
    Database(#[source] DriverError),
}

/// An error of the driver in use.
pub type DriverError = Box<dyn std::error::Error + Send + Sync>;

impl AcceptError {
    /// Decides by `sqlstate` what `source` means.
    fn of(sqlstate: Option<&str>, message: &str, source: DriverError) -> Self {
        match sqlstate {
            Some("40001" | "40P01") => Self::Conflict(source),
            Some("42P01" | "42883" | "3F000") => Self::SchemaMissing(source),
            // Integrity constraints (class 23) and values that are no value of their type (class 22).
            Some(state) if state.starts_with("23") || state.starts_with("22") => {
                Self::Refused { message: message.to_owned(), source }
            }
            _ => Self::Database(source),
        }
    }
}

/// Parameters are texts: that needs no support for further types from a driver.
fn accept_statement(schema: Option<&str>) -> String {
    format!("SELECT {}inbox_accept($1, $2::uuid)", prefix(schema))
}

fn accept_placed_statement(schema: Option<&str>) -> String {
    format!("SELECT {}inbox_accept($1, $2::uuid, $3, $4, $5::bigint)", prefix(schema))
}

fn place_parameters(consumer: &str, place: &Place<'_>) -> [String; 5] {
    [
        consumer.to_owned(),
        place.event_id.to_string(),
        place.aggregate_type.to_owned(),
        place.aggregate_id.to_owned(),
        place.sequence.to_string(),
    ]
}

fn acceptance(answer: &str) -> Result<Acceptance, AcceptError> {
    match answer {
        "first" => Ok(Acceptance::First),
        "duplicate" => Ok(Acceptance::Duplicate),
        other => Err(unknown(other)),
    }
}

fn succession(answer: &str) -> Result<Succession, AcceptError> {
    match answer {
        "next" => Ok(Succession::Next),
        "duplicate" => Ok(Succession::Duplicate),
        "gap" => Ok(Succession::Gap),
        "stale" => Ok(Succession::Stale),
        other => Err(unknown(other)),
    }
}

fn unknown(answer: &str) -> AcceptError {
    AcceptError::Database(format!("inbox_accept answered {answer:?}").into())
}
