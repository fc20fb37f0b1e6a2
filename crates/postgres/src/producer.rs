//! Writing an event in the caller's own transaction, next to the business change that it tells of.
//!
//! Every function here takes the driver's *transaction*. A pool, a client or a bare connection is refused by the
//! compiler: an event written outside the transaction of its business change is the dual write that an outbox exists
//! to avoid.

#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(feature = "tokio-postgres")]
pub mod tokio_postgres;

use postbox_core::event::NewEvent;

use crate::schema::prefix;

/// Why an event was not written. The transaction cannot be used further, except after a rollback to a savepoint.
#[derive(Debug, thiserror::Error)]
pub enum EnqueueError {
    /// Another transaction got in between (SQLSTATE 40001 or 40P01): roll back and run the whole transaction again.
    #[error("a conflict with another transaction: run the transaction again")]
    Conflict(#[source] DriverError),
    /// The event breaks a rule of the outbox; the same event will be refused again.
    #[error("the event was refused: {message}")]
    Refused {
        /// What is wrong with it, in the database's words.
        message: String,
        /// Name of the rule, for example `outbox_event_type_characters`.
        rule: Option<String>,
        /// The driver's error.
        #[source]
        source: DriverError,
    },
    /// The tables are not where the connection looks for them: run `postbox migrate`, or name the schema.
    #[error("the outbox's tables were not found: run `postbox migrate`, or name their schema")]
    SchemaMissing(#[source] DriverError),
    /// Anything else the driver reports.
    #[error("the event could not be written")]
    Database(#[source] DriverError),
}

/// An error of the driver in use.
pub type DriverError = Box<dyn std::error::Error + Send + Sync>;

impl EnqueueError {
    /// Decides by `sqlstate` what `source` means.
    fn of(sqlstate: Option<&str>, message: &str, rule: Option<&str>, source: DriverError) -> Self {
        match sqlstate {
            Some("40001" | "40P01") => Self::Conflict(source),
            Some("42P01" | "42883" | "3F000") => Self::SchemaMissing(source),
            // Integrity constraints (class 23) and values that are no value of their type (class 22).
            Some(state) if state.starts_with("23") || state.starts_with("22") => {
                Self::Refused { message: message.to_owned(), rule: rule.map(str::to_owned), source }
            }
            _ => Self::Database(source),
        }
    }
}

/// The statement, with all parameters as text: it needs no support for further types from a driver.
fn statement(schema: Option<&str>) -> String {
    format!(
        "SELECT {}outbox_enqueue($1, $2, $3, $4::json, $5::json, $6::uuid, $7::timestamptz, $8::timestamptz, \
         $9::bigint)::text",
        prefix(schema)
    )
}

/// The parameters of [`statement`], in order; the first four are never null.
fn parameters(event: &NewEvent) -> [Option<String>; 9] {
    [
        Some(event.aggregate_type.clone()),
        Some(event.aggregate_id.clone()),
        Some(event.event_type.clone()),
        Some(event.payload.get().to_owned()),
        event.headers.as_ref().map(|headers| headers.get().to_owned()),
        event.event_id.map(|id| id.to_string()),
        event.deliver_after.map(|moment| moment.to_string()),
        event.expires_at.map(|moment| moment.to_string()),
        event.aggregate_seq.map(|seq| seq.to_string()),
    ]
}
