//! For transactions of the crate `sqlx` (its PostgreSQL driver).

use postbox_core::inbox::{Acceptance, Place, Succession};
use sqlx_core::query_scalar::query_scalar;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::transaction::Transaction;
use sqlx_postgres::Postgres;
use uuid::Uuid;

use super::{
    AcceptError, accept_placed_statement, accept_statement, acceptance, place_parameters, succession,
};

/// Says whether `consumer` meets the event for the first time, and remembers it if `tx` commits. Waits while another
/// transaction is at the same event. The inbox is found through the connection's search path.
///
/// # Errors
/// See [`AcceptError`].
pub async fn accept(
    tx: &mut Transaction<'_, Postgres>,
    consumer: &str,
    event_id: &Uuid,
) -> Result<Acceptance, AcceptError> {
    let parameters = [consumer.to_owned(), event_id.to_string()];
    acceptance(&call(tx, accept_statement(None), parameters).await?)
}

/// The same, with the inbox in `schema`.
///
/// # Errors
/// See [`AcceptError`].
pub async fn accept_in(
    schema: &str,
    tx: &mut Transaction<'_, Postgres>,
    consumer: &str,
    event_id: &Uuid,
) -> Result<Acceptance, AcceptError> {
    let parameters = [consumer.to_owned(), event_id.to_string()];
    acceptance(&call(tx, accept_statement(Some(schema)), parameters).await?)
}

/// Like [`accept`], and says how the event follows on what `consumer` has accepted of its aggregate.
///
/// # Errors
/// See [`AcceptError`].
pub async fn accept_placed(
    tx: &mut Transaction<'_, Postgres>,
    consumer: &str,
    place: &Place<'_>,
) -> Result<Succession, AcceptError> {
    succession(&call(tx, accept_placed_statement(None), place_parameters(consumer, place)).await?)
}

/// The same, with the inbox in `schema`.
///
/// # Errors
/// See [`AcceptError`].
pub async fn accept_placed_in(
    schema: &str,
    tx: &mut Transaction<'_, Postgres>,
    consumer: &str,
    place: &Place<'_>,
) -> Result<Succession, AcceptError> {
    let statement = accept_placed_statement(Some(schema));
    succession(&call(tx, statement, place_parameters(consumer, place)).await?)
}

async fn call<const N: usize>(
    tx: &mut Transaction<'_, Postgres>,
    statement: String,
    parameters: [String; N],
) -> Result<String, AcceptError> {
    // Safe: the only part that is not ours is the schema's name, quoted as an identifier.
    let mut query = query_scalar::<Postgres, String>(AssertSqlSafe(statement));
    for parameter in parameters {
        query = query.bind(parameter);
    }
    query.fetch_one(&mut **tx).await.map_err(refine)
}

fn refine(error: sqlx_core::Error) -> AcceptError {
    let (state, message) = match error.as_database_error() {
        Some(answer) => (answer.code().map(|code| code.into_owned()), answer.message().to_owned()),
        None => Default::default(),
    };
    AcceptError::of(state.as_deref(), &message, error.into())
}
