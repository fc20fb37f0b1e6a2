//! Connections that are made when needed and given up when in doubt.
//!
//! Nothing here depends on session state, so a transaction-mode pooler may stand between: statements are sent unnamed
//! with their parameter types (one round trip, nothing left prepared behind), and what needs planner settings or a
//! lock timeout is an SQL function that carries them. A call that is not answered in time loses its connection, and
//! the server is asked to cancel it; a connection whose call was dropped half-way is never used again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::failure;
use crate::target::Target;

/// A parameter with its type.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A fixed number of connections to one database, made lazily.
pub(crate) struct Connections {
    target: Target,
    /// Longest time of one call.
    limit: Duration,
    idle: Mutex<Vec<Client>>,
    free: Semaphore,
}

/// The right to use one connection.
pub(crate) struct Connection<'pool> {
    pool: &'pool Connections,
    /// Taken out while a call is in flight, so that a dropped call takes the connection with it.
    client: Option<Client>,
    in_transaction: bool,
    _permit: SemaphorePermit<'pool>,
}

impl Connections {
    pub(crate) fn new(target: Target, size: usize, limit: Duration) -> Self {
        Self { target, limit, idle: Mutex::default(), free: Semaphore::new(size) }
    }

    /// Waits for a connection to be free, and makes one when there is none.
    pub(crate) async fn take(&self) -> StoreResult<Connection<'_>> {
        let permit = match timeout(self.limit, self.free.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) | Err(_) => {
                return Err(failure::timed_out("get a connection", &self.target.place, self.limit));
            }
        };
        let idle = self.idle();
        let client = match idle {
            Some(client) => client,
            None => self.connect().await?,
        };
        Ok(Connection { pool: self, client: Some(client), in_transaction: false, _permit: permit })
    }

    /// One statement on any connection.
    pub(crate) async fn query(
        &self,
        what: &'static str,
        statement: &str,
        params: &[Param<'_>],
    ) -> StoreResult<Vec<Row>> {
        self.take().await?.query(what, statement, params).await
    }

    fn idle(&self) -> Option<Client> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(client) = idle.pop() {
            if !client.is_closed() {
                return Some(client);
            }
        }
        None
    }

    async fn connect(&self) -> StoreResult<Client> {
        let Target { config, tls, place } = &self.target;
        let connecting = config.connect(tls.clone());
        let (client, connection) = match timeout(self.limit, connecting).await {
            Ok(Ok(parts)) => parts,
            Ok(Err(error)) => return Err(failure::explain("connect", place, error)),
            Err(_) => return Err(failure::timed_out("connect", place, self.limit)),
        };
        let place = std::sync::Arc::clone(place);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%place, %error, "database connection ended");
            }
        });
        Ok(client)
    }
}

impl Connection<'_> {
    /// Runs one statement with parameters.
    pub(crate) async fn query(
        &mut self,
        what: &'static str,
        statement: &str,
        params: &[Param<'_>],
    ) -> StoreResult<Vec<Row>> {
        let client = self.client.take().ok_or_else(given_up)?;
        let answer = timeout(self.pool.limit, client.query_typed(statement, params)).await;
        self.finish(what, client, answer)
    }

    /// Runs two statements in this order, the second without waiting for the answer to the first.
    pub(crate) async fn query_both(
        &mut self,
        what: &'static str,
        first: (&str, &[Param<'_>]),
        second: (&str, &[Param<'_>]),
    ) -> StoreResult<(Vec<Row>, Vec<Row>)> {
        let client = self.client.take().ok_or_else(given_up)?;
        let both = futures_util::future::try_join(
            client.query_typed(first.0, first.1),
            client.query_typed(second.0, second.1),
        );
        let answer = timeout(self.pool.limit, both).await;
        // When the first fails, the answer to the second is still on its way.
        if matches!(answer, Ok(Err(_))) {
            let answer = answer.map(|both| both.map(|_| ()));
            return Err(self.give_up(what, client, answer));
        }
        self.finish(what, client, answer)
    }

    /// Runs statements without parameters or answers.
    pub(crate) async fn run(&mut self, what: &'static str, statements: &str) -> StoreResult<()> {
        let client = self.client.take().ok_or_else(given_up)?;
        let answer = timeout(self.pool.limit, client.batch_execute(statements)).await;
        self.finish(what, client, answer)
    }

    /// Begins a transaction. Until [`Self::commit`] has succeeded, dropping the connection ends it for good, and with it
    /// the transaction.
    pub(crate) async fn begin(&mut self, what: &'static str) -> StoreResult<()> {
        self.in_transaction = true;
        self.run(what, "BEGIN ISOLATION LEVEL READ COMMITTED").await
    }

    pub(crate) async fn commit(&mut self, what: &'static str) -> StoreResult<()> {
        self.run(what, "COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    fn finish<T>(
        &mut self,
        what: &'static str,
        client: Client,
        answer: Result<Result<T, tokio_postgres::Error>, tokio::time::error::Elapsed>,
    ) -> StoreResult<T> {
        match answer {
            Ok(Ok(answer)) => {
                self.client = Some(client);
                Ok(answer)
            }
            Ok(Err(error)) => {
                let error = failure::explain(what, &self.pool.target.place, error);
                // A server that is going away, or turned into a standby, answers with an error on a live connection.
                if error.kind != StoreErrorKind::Unavailable {
                    self.client = Some(client);
                }
                Err(error)
            }
            Err(elapsed) => Err(self.give_up(what, client, Err(elapsed))),
        }
    }

    /// Abandons the connection; a call that may still run is cancelled as far as possible.
    fn give_up(
        &self,
        what: &'static str,
        client: Client,
        answer: Result<Result<(), tokio_postgres::Error>, tokio::time::error::Elapsed>,
    ) -> StoreError {
        let Target { tls, place, .. } = &self.pool.target;
        if let Ok(Err(error)) = answer {
            return failure::explain(what, place, error);
        }
        let (token, tls) = (client.cancel_token(), tls.clone());
        tokio::spawn(async move {
            // Without an answer to the cancellation nothing more can be done.
            let _ = timeout(Duration::from_secs(5), token.cancel_query(tls)).await;
            drop(client);
        });
        failure::timed_out(what, place, self.pool.limit)
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let reusable = |client: &Client| !self.in_transaction && !client.is_closed();
        if let Some(client) = self.client.take().filter(reusable) {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }
}

fn given_up() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the connection was given up by an earlier call")
}
