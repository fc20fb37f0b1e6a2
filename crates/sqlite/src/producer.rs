//! Writing an event in the caller's own transaction.

use postbox_core::event::NewEvent;
use rusqlite::{ErrorCode, OptionalExtension as _, Transaction, named_params};
use uuid::Uuid;

/// Why an event was not written. The transaction goes on without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The event breaks a rule of the table; the text says which.
    #[error("the event was refused: {reason}")]
    Refused {
        /// The rule.
        reason: String,
    },
    /// The sequence that the event was given is not the next one of its aggregate.
    #[error("aggregate_seq of {aggregate_type} {aggregate_id} must be {expected}, not {given}")]
    OutOfSequence {
        /// Kind of the aggregate.
        aggregate_type: String,
        /// Identity of the aggregate.
        aggregate_id: String,
        /// The next sequence.
        expected: i64,
        /// The event's.
        given: i64,
    },
    /// SQLite could not do it.
    #[error("the event could not be written")]
    Sqlite(#[from] rusqlite::Error),
}

/// Writes `event` in the caller's transaction and returns its id; it is sent once, and only if, that commits.
///
/// An event whose id is there already is not written again: the call succeeds, whatever else the event says.
///
/// Taking the transaction itself is what makes the outbox safe; a bare connection, on which every statement commits on
/// its own, is not accepted. Begin it with [`rusqlite::TransactionBehavior::Immediate`] when it reads before it
/// writes: a deferred one fails at its first write with "database is locked" when somebody else wrote meanwhile.
///
/// ```
/// # use postbox_core::event::NewEvent;
/// # use rusqlite::{Connection, TransactionBehavior};
/// # let mut connection = Connection::open_in_memory()?;
/// # postbox_sqlite::migrate(&mut connection)?;
/// # connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")?;
/// let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
/// tx.execute("INSERT INTO orders (id, state) VALUES (7, 'confirmed')", [])?;
/// let event = NewEvent::new("order", "7", "order.confirmed", &[("total", 4200)])?;
/// postbox_sqlite::enqueue(&mut tx, &event)?;
/// tx.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`EnqueueError::Refused`] and [`EnqueueError::OutOfSequence`] when the event is wrong; otherwise SQLite's error.
pub fn enqueue(transaction: &mut Transaction<'_>, event: &NewEvent) -> Result<Uuid, EnqueueError> {
    insert(transaction, event).map_err(|error| explain(transaction, event, error))
}

fn insert(transaction: &Transaction<'_>, event: &NewEvent) -> rusqlite::Result<Uuid> {
    let event_id = event.event_id.unwrap_or_else(Uuid::now_v7);
    transaction.prepare_cached(include_str!("producer/enqueue.sql"))?.execute(named_params! {
        ":event_id": event_id.to_string(),
        ":aggregate_type": event.aggregate_type,
        ":aggregate_id": event.aggregate_id,
        ":aggregate_seq": event.aggregate_seq,
        ":event_type": event.event_type,
        ":payload": event.payload.get(),
        ":headers": event.headers.as_ref().map(|headers| headers.get()),
        // Neither earlier nor later than asked for: SQLite's clock has whole milliseconds.
        ":deliver_after": event.deliver_after.map(|at| whole_millis(at, true)),
        ":expires_at": event.expires_at.map(|at| whole_millis(at, false)),
    })?;
    Ok(event_id)
}

/// Milliseconds since 1970, rounded up or down.
fn whole_millis(at: jiff::Timestamp, up: bool) -> i64 {
    let millis =
        at.as_nanosecond().div_euclid(1_000_000) + i128::from(up && at.as_nanosecond() % 1_000_000 != 0);
    i64::try_from(millis).unwrap_or(i64::MAX)
}

fn explain(transaction: &Transaction<'_>, event: &NewEvent, error: rusqlite::Error) -> EnqueueError {
    if let rusqlite::Error::SqliteFailure(failure, Some(reason)) = &error
        && failure.code == ErrorCode::ConstraintViolation
    {
        return EnqueueError::Refused { reason: reason.clone() };
    }
    match (event.aggregate_seq, next_sequence(transaction, event)) {
        (Some(given), Ok(expected)) if given != expected => EnqueueError::OutOfSequence {
            aggregate_type: event.aggregate_type.clone(),
            aggregate_id: event.aggregate_id.clone(),
            expected,
            given,
        },
        _ => EnqueueError::Sqlite(error),
    }
}

fn next_sequence(transaction: &Transaction<'_>, event: &NewEvent) -> rusqlite::Result<i64> {
    let last: Option<i64> = transaction
        .query_row(
            "SELECT last_seq FROM outbox_lane WHERE aggregate_type = ?1 AND aggregate_id = ?2",
            [&event.aggregate_type, &event.aggregate_id],
            |row| row.get(0),
        )
        .optional()?;
    Ok(last.unwrap_or(0) + 1)
}
