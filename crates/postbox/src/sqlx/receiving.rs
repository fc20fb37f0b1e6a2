//! Inbox, application and commit in one transaction.

use postbox_core::inbox::Acceptance;
use postbox_postgres::consumer::AcceptError;
use postbox_postgres::consumer::sqlx::{accept, accept_in};
use sqlx_core::transaction::Transaction;
use sqlx_postgres::Postgres;

use crate::receiver::{Answer, HandlerError, Incoming};

/// Accepts `event` for `consumer` in `tx`, lets `act` do what it makes this service do in that same transaction, and
/// commits. A duplicate is not acted upon again. Whatever goes wrong is rolled back, and the sender tries again later.
///
/// What `act` writes to the outbox of this database (`enqueue`) is sent exactly if the event was accepted.
pub async fn receive<F>(
    mut tx: Transaction<'static, Postgres>,
    consumer: &str,
    event: &Incoming,
    act: F,
) -> Answer
where
    F: AsyncFnOnce(&mut Transaction<'static, Postgres>, &Incoming) -> Result<(), HandlerError>,
{
    let accepted = accept(&mut tx, consumer, &event.event_id).await;
    finish(tx, accepted, event, act).await
}

/// The same, with the inbox in `schema`.
pub async fn receive_in<F>(
    schema: &str,
    mut tx: Transaction<'static, Postgres>,
    consumer: &str,
    event: &Incoming,
    act: F,
) -> Answer
where
    F: AsyncFnOnce(&mut Transaction<'static, Postgres>, &Incoming) -> Result<(), HandlerError>,
{
    let accepted = accept_in(schema, &mut tx, consumer, &event.event_id).await;
    finish(tx, accepted, event, act).await
}

/// A transaction that is dropped is rolled back.
async fn finish<F>(
    mut tx: Transaction<'static, Postgres>,
    accepted: Result<Acceptance, AcceptError>,
    event: &Incoming,
    act: F,
) -> Answer
where
    F: AsyncFnOnce(&mut Transaction<'static, Postgres>, &Incoming) -> Result<(), HandlerError>,
{
    match accepted {
        Ok(Acceptance::First) => {}
        Ok(Acceptance::Duplicate) => return Answer::Duplicate,
        Err(error) => return Answer::failed(&error),
    }
    if let Err(error) = act(&mut tx, event).await {
        return error.into();
    }
    match tx.commit().await {
        Ok(()) => Answer::Done,
        // Whether it committed is not known; the repetition will tell.
        Err(error) => Answer::failed(&error),
    }
}
