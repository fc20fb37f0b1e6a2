//! Inbox, application and commit in one transaction.

use ::tokio_postgres::Transaction;
use postbox_core::inbox::Acceptance;
use postbox_postgres::consumer::AcceptError;
use postbox_postgres::consumer::tokio_postgres::{accept, accept_in};

use crate::receiver::{Answer, HandlerError, Incoming};

/// Accepts `event` for `consumer` in `tx`, lets `act` do what it makes this service do in that same transaction, and
/// commits. A duplicate is not acted upon again. Whatever goes wrong is rolled back, and the sender tries again later.
///
/// What `act` writes to the outbox of this database (`enqueue`) is sent exactly if the event was accepted.
///
/// ```no_run
/// # use postbox::receiver::{Answer, Incoming};
/// # async fn hook(client: &mut tokio_postgres::Client, event: &Incoming) -> Answer {
/// let Ok(tx) = client.transaction().await else { return Answer::Unavailable };
/// postbox::tokio_postgres::receive(tx, "billing", event, async |tx, event| {
///     tx.execute("INSERT INTO invoice (order_id) VALUES ($1)", &[&event.aggregate_id]).await?;
///     let issued = postbox::NewEvent::new("invoice", &event.aggregate_id, "invoice.issued", &())?;
///     postbox::tokio_postgres::enqueue(tx, &issued).await?;
///     Ok(())
/// })
/// .await
/// # }
/// ```
pub async fn receive<F>(mut tx: Transaction<'_>, consumer: &str, event: &Incoming, act: F) -> Answer
where
    F: AsyncFnOnce(&mut Transaction<'_>, &Incoming) -> Result<(), HandlerError>,
{
    let accepted = accept(&mut tx, consumer, &event.event_id).await;
    finish(tx, accepted, event, act).await
}

/// The same, with the inbox in `schema`.
pub async fn receive_in<F>(
    schema: &str,
    mut tx: Transaction<'_>,
    consumer: &str,
    event: &Incoming,
    act: F,
) -> Answer
where
    F: AsyncFnOnce(&mut Transaction<'_>, &Incoming) -> Result<(), HandlerError>,
{
    let accepted = accept_in(schema, &mut tx, consumer, &event.event_id).await;
    finish(tx, accepted, event, act).await
}

/// A transaction that is dropped is rolled back.
async fn finish<F>(
    mut tx: Transaction<'_>,
    accepted: Result<Acceptance, AcceptError>,
    event: &Incoming,
    act: F,
) -> Answer
where
    F: AsyncFnOnce(&mut Transaction<'_>, &Incoming) -> Result<(), HandlerError>,
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
