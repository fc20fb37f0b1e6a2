//! For transactions of the crate `sqlx` (its PostgreSQL driver).

use postbox_core::event::NewEvent;
use sqlx_core::query_scalar::query_scalar;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::transaction::Transaction;
use sqlx_postgres::Postgres;
use uuid::Uuid;

use super::{EnqueueError, parameters, statement};

/// Writes `event` and returns its `event_id`; a repeated `event_id` writes nothing. The tables are found through the
/// connection's search path.
///
/// # Errors
/// See [`EnqueueError`].
pub async fn enqueue(tx: &mut Transaction<'_, Postgres>, event: &NewEvent) -> Result<Uuid, EnqueueError> {
    call(tx, statement(None), event).await
}

/// The same, with the outbox in `schema`.
///
/// # Errors
/// See [`EnqueueError`].
pub async fn enqueue_in(
    schema: &str,
    tx: &mut Transaction<'_, Postgres>,
    event: &NewEvent,
) -> Result<Uuid, EnqueueError> {
    call(tx, statement(Some(schema)), event).await
}

async fn call(
    tx: &mut Transaction<'_, Postgres>,
    statement: String,
    event: &NewEvent,
) -> Result<Uuid, EnqueueError> {
    // Safe: the only part that is not ours is the schema's name, quoted as an identifier.
    let mut query = query_scalar::<Postgres, String>(AssertSqlSafe(statement));
    for parameter in parameters(event) {
        query = query.bind(parameter);
    }
    let written = query.fetch_one(&mut **tx).await.map_err(refine)?;
    written.parse().map_err(|error: uuid::Error| EnqueueError::Database(error.into()))
}

fn refine(error: sqlx_core::Error) -> EnqueueError {
    let (state, message, rule) = match error.as_database_error() {
        Some(answer) => (
            answer.code().map(|code| code.into_owned()),
            answer.message().to_owned(),
            answer.constraint().map(str::to_owned),
        ),
        None => Default::default(),
    };
    EnqueueError::of(state.as_deref(), &message, rule.as_deref(), error.into())
}
