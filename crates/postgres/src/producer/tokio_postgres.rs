//! For transactions of the crate `tokio-postgres`.

use ::tokio_postgres::Transaction;
use ::tokio_postgres::types::{ToSql, Type};
use postbox_core::event::NewEvent;
use uuid::Uuid;

use super::{EnqueueError, parameters, statement};

/// Writes `event` and returns its `event_id`; a repeated `event_id` writes nothing. The tables are found through the
/// connection's search path.
///
/// ```no_run
/// # async fn confirm(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use postbox_core::event::NewEvent;
/// use postbox_postgres::producer::tokio_postgres::enqueue;
///
/// let mut tx = client.transaction().await?;
/// tx.execute("UPDATE orders SET status = 'confirmed' WHERE id = $1", &[&4711_i64]).await?;
/// enqueue(&mut tx, &NewEvent::new("order", "4711", "order.confirmed", &[4711])?).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// See [`EnqueueError`].
pub async fn enqueue(tx: &mut Transaction<'_>, event: &NewEvent) -> Result<Uuid, EnqueueError> {
    call(tx, &statement(None), event).await
}

/// The same, with the outbox in `schema`.
///
/// # Errors
/// See [`EnqueueError`].
pub async fn enqueue_in(
    schema: &str,
    tx: &mut Transaction<'_>,
    event: &NewEvent,
) -> Result<Uuid, EnqueueError> {
    call(tx, &statement(Some(schema)), event).await
}

async fn call(tx: &mut Transaction<'_>, statement: &str, event: &NewEvent) -> Result<Uuid, EnqueueError> {
    let parameters = parameters(event);
    // Unnamed, with types: one round trip, and nothing left prepared behind a pooler.
    let typed: Vec<(&(dyn ToSql + Sync), Type)> =
        parameters.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).collect();
    let row = tx.query_typed_one(statement, &typed).await.map_err(refine)?;
    let written: &str = row.try_get(0).map_err(refine)?;
    written.parse().map_err(|error: uuid::Error| EnqueueError::Database(error.into()))
}

fn refine(error: ::tokio_postgres::Error) -> EnqueueError {
    let (message, rule) = error.as_db_error().map_or_else(Default::default, |answer| {
        (answer.message().to_owned(), answer.constraint().map(str::to_owned))
    });
    let state = error.code().map(|state| state.code().to_owned());
    EnqueueError::of(state.as_deref(), &message, rule.as_deref(), error.into())
}
