//! For transactions of the crate `tokio-postgres`.

use ::tokio_postgres::Transaction;
use ::tokio_postgres::types::{ToSql, Type};
use postbox_core::inbox::{Acceptance, Place, Succession};
use uuid::Uuid;

use super::{
    AcceptError, accept_placed_statement, accept_statement, acceptance, place_parameters, succession,
};

/// Says whether `consumer` meets the event for the first time, and remembers it if `tx` commits. Waits while another
/// transaction is at the same event. The inbox is found through the connection's search path.
///
/// ```no_run
/// # async fn receive(client: &mut tokio_postgres::Client, event_id: uuid::Uuid) -> Result<(), Box<dyn std::error::Error>> {
/// use postbox_core::inbox::Acceptance;
/// use postbox_postgres::consumer::tokio_postgres::accept;
///
/// let mut tx = client.transaction().await?;
/// if accept(&mut tx, "billing", &event_id).await? == Acceptance::First {
///     tx.execute("INSERT INTO invoice (order_id) VALUES ($1)", &[&4711_i64]).await?;
/// }
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// See [`AcceptError`].
pub async fn accept(
    tx: &mut Transaction<'_>,
    consumer: &str,
    event_id: &Uuid,
) -> Result<Acceptance, AcceptError> {
    acceptance(&call(tx, &accept_statement(None), &[consumer.to_owned(), event_id.to_string()]).await?)
}

/// The same, with the inbox in `schema`.
///
/// # Errors
/// See [`AcceptError`].
pub async fn accept_in(
    schema: &str,
    tx: &mut Transaction<'_>,
    consumer: &str,
    event_id: &Uuid,
) -> Result<Acceptance, AcceptError> {
    acceptance(
        &call(tx, &accept_statement(Some(schema)), &[consumer.to_owned(), event_id.to_string()]).await?,
    )
}

/// Like [`accept`], and says how the event follows on what `consumer` has accepted of its aggregate.
///
/// # Errors
/// See [`AcceptError`].
pub async fn accept_placed(
    tx: &mut Transaction<'_>,
    consumer: &str,
    place: &Place<'_>,
) -> Result<Succession, AcceptError> {
    succession(&call(tx, &accept_placed_statement(None), &place_parameters(consumer, place)).await?)
}

/// The same, with the inbox in `schema`.
///
/// # Errors
/// See [`AcceptError`].
pub async fn accept_placed_in(
    schema: &str,
    tx: &mut Transaction<'_>,
    consumer: &str,
    place: &Place<'_>,
) -> Result<Succession, AcceptError> {
    let statement = accept_placed_statement(Some(schema));
    succession(&call(tx, &statement, &place_parameters(consumer, place)).await?)
}

async fn call(
    tx: &mut Transaction<'_>,
    statement: &str,
    parameters: &[String],
) -> Result<String, AcceptError> {
    // Unnamed, with types: one round trip, and nothing left prepared behind a pooler.
    let typed: Vec<(&(dyn ToSql + Sync), Type)> =
        parameters.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).collect();
    let row = tx.query_typed_one(statement, &typed).await.map_err(refine)?;
    row.try_get(0).map_err(refine)
}

fn refine(error: ::tokio_postgres::Error) -> AcceptError {
    let message = error.as_db_error().map(|answer| answer.message().to_owned()).unwrap_or_default();
    let state = error.code().map(|state| state.code().to_owned());
    AcceptError::of(state.as_deref(), &message, error.into())
}
