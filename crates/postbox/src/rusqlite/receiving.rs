//! Inbox, application and commit in one transaction.

use ::rusqlite::{Connection, Transaction, TransactionBehavior};
use postbox_core::inbox::Acceptance;
use postbox_sqlite::accept;

use crate::receiver::{Answer, HandlerError, Incoming};

/// Accepts `event` for `consumer` in a transaction of `connection`, lets `act` do what it makes this service do in that
/// same transaction, and commits. A duplicate is not acted upon again. Whatever goes wrong is rolled back, and the sender
/// tries again later.
///
/// What `act` writes to the outbox of this database (`enqueue`) is sent exactly if the event was accepted.
pub fn receive<F>(connection: &mut Connection, consumer: &str, event: &Incoming, act: F) -> Answer
where
    F: FnOnce(&mut Transaction<'_>, &Incoming) -> Result<(), HandlerError>,
{
    let mut tx = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(tx) => tx,
        Err(error) => return Answer::failed(&error),
    };
    match accept(&mut tx, consumer, &event.event_id) {
        Ok(Acceptance::First) => {}
        Ok(Acceptance::Duplicate) => return Answer::Duplicate,
        Err(error) => return Answer::failed(&error),
    }
    // A transaction that is dropped is rolled back.
    if let Err(error) = act(&mut tx, event) {
        return error.into();
    }
    match tx.commit() {
        Ok(()) => Answer::Done,
        Err(error) => Answer::failed(&error),
    }
}
