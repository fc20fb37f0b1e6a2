//! Accepting an event in the caller's own transaction, next to what the event makes it do.

use postbox_core::inbox::{Acceptance, Place, Succession};
use rusqlite::{ErrorCode, OptionalExtension as _, Transaction, named_params};
use uuid::Uuid;

/// Why it is not known whether the event is new. The transaction goes on without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// Another connection wrote after this transaction had read, or held the lock for longer than the busy timeout:
    /// roll back and run the whole transaction again. Does not happen after `BEGIN IMMEDIATE`.
    #[error("a conflict with another transaction: run the transaction again")]
    Conflict(#[source] rusqlite::Error),
    /// The consumer's name or the place of the event breaks a rule of the inbox; the text says which.
    #[error("the inbox refused it: {reason}")]
    Refused {
        /// The rule.
        reason: String,
    },
    /// SQLite could not do it.
    #[error("the inbox could not be asked")]
    Sqlite(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for AcceptError {
    fn from(error: rusqlite::Error) -> Self {
        match (error.sqlite_error_code(), &error) {
            (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => Self::Conflict(error),
            (Some(ErrorCode::ConstraintViolation), rusqlite::Error::SqliteFailure(_, Some(reason))) => {
                Self::Refused { reason: reason.clone() }
            }
            _ => Self::Sqlite(error),
        }
    }
}

/// Says whether `consumer` meets the event for the first time, and remembers it if the transaction commits.
///
/// Begin the transaction with [`rusqlite::TransactionBehavior::Immediate`]: it then waits for one that is at the same
/// event, and sees what that came to. A deferred one that has read before fails with [`AcceptError::Conflict`] instead.
///
/// ```
/// # use postbox_core::inbox::Acceptance;
/// # use rusqlite::{Connection, TransactionBehavior};
/// # let mut connection = Connection::open_in_memory()?;
/// # postbox_sqlite::migrate_inbox(&mut connection)?;
/// # connection.execute_batch("CREATE TABLE invoice (order_id INTEGER)")?;
/// # let event_id = uuid::Uuid::now_v7();
/// let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
/// if postbox_sqlite::accept(&mut tx, "billing", &event_id)? == Acceptance::First {
///     tx.execute("INSERT INTO invoice (order_id) VALUES (7)", [])?;
/// }
/// tx.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`AcceptError`].
pub fn accept(tx: &mut Transaction<'_>, consumer: &str, event_id: &Uuid) -> Result<Acceptance, AcceptError> {
    let written = tx
        .prepare_cached("INSERT INTO inbox (consumer, event_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute([consumer, &event_id.to_string()])?;
    Ok(if written == 0 { Acceptance::Duplicate } else { Acceptance::First })
}

/// Like [`accept`], and says how the event follows on what `consumer` has accepted of its aggregate.
///
/// # Errors
/// See [`AcceptError`].
pub fn accept_placed(
    tx: &mut Transaction<'_>,
    consumer: &str,
    place: &Place<'_>,
) -> Result<Succession, AcceptError> {
    if place.sequence < 1 {
        return Err(AcceptError::Refused {
            reason: format!("an aggregate_seq is 1 or more, not {}", place.sequence),
        });
    }
    if accept(tx, consumer, &place.event_id)? == Acceptance::Duplicate {
        return Ok(Succession::Duplicate);
    }
    let last: Option<i64> = tx
        .prepare_cached(include_str!("consumer/last_sequence.sql"))?
        .query_row([consumer, place.aggregate_type, place.aggregate_id], |row| row.get(0))
        .optional()?;
    tx.prepare_cached(include_str!("consumer/remember_sequence.sql"))?.execute(named_params! {
        ":consumer": consumer,
        ":aggregate_type": place.aggregate_type,
        ":aggregate_id": place.aggregate_id,
        ":sequence": place.sequence,
    })?;
    let last = last.unwrap_or(0);
    Ok(if place.sequence <= last {
        Succession::Stale
    } else if place.sequence == last + 1 {
        Succession::Next
    } else {
        Succession::Gap
    })
}
