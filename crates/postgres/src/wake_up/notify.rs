//! `LISTEN`: the database tells when a transaction with new events has committed.

use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::future::{self, Either};
use futures_util::stream::poll_fn;
use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};
use postbox_core::wake_up::{Heard, WakeUp};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client};

use crate::failure;
use crate::schema::prefix;
use crate::target::Target;

/// Longest time until the session listens.
const SETUP_LIMIT: Duration = Duration::from_secs(20);

/// Longest time until the session hears its own notification: behind a pooler in transaction mode it never does.
const ECHO_LIMIT: Duration = Duration::from_secs(5);

/// Time between two questions whether the session still lives and producers still announce: a firewall may have dropped
/// it in silence.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Listens for what [`PostgresStore::announce_events`](crate::PostgresStore::announce_events) makes producers announce.
///
/// Needs a session of its own, so a pooler in transaction mode is no way to it.
pub struct NotifyWakeUp {
    target: Target,
    is_announced: String,
}

impl NotifyWakeUp {
    /// For the outbox in `schema`, or in the connection's own.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub fn new(url: &str, schema: Option<&str>) -> StoreResult<Self> {
        let is_announced = include_str!("is_announced.sql").replace("@.", &prefix(schema));
        Ok(Self { target: Target::parse(url)?, is_announced })
    }

    async fn set_up(&self, client: &Client) -> StoreResult<()> {
        let explain = |error| failure::explain("listen for new events", &self.target.place, error);
        client.batch_execute("LISTEN postbox; NOTIFY postbox").await.map_err(explain)?;
        self.check_announced(client).await
    }

    async fn check_announced(&self, client: &Client) -> StoreResult<()> {
        let explain = |error| failure::explain("listen for new events", &self.target.place, error);
        let row = client.query_typed(&self.is_announced, &[]).await.map_err(explain)?;
        let announced = row.first().is_some_and(|row| row.try_get(0).unwrap_or(false));
        if announced {
            return Ok(());
        }
        Err(StoreError::new(
            StoreErrorKind::SchemaMissing,
            format!(
                "new events are not announced on {}: run `postbox migrate --notify on` as the owner of the tables",
                self.target.place
            ),
        ))
    }

    /// Keeps asking; returns why that was not answered.
    async fn keep_alive(&self, client: &Client) -> StoreError {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            match timeout(SETUP_LIMIT, self.check_announced(client)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error,
                Err(_) => {
                    return failure::timed_out("listen for new events", &self.target.place, SETUP_LIMIT);
                }
            }
        }
    }
}

fn deaf(place: &str) -> StoreError {
    let message = format!(
        "the session on {place} does not hear its own notification: connect the relay past the pooler, or set \
         wake_up = \"poll\""
    );
    StoreError::new(StoreErrorKind::Input, message)
}

#[async_trait]
impl WakeUp for NotifyWakeUp {
    fn name(&self) -> &'static str {
        "notify"
    }

    async fn listen(&self, heard: &(dyn Fn(Heard) + Send + Sync)) -> StoreError {
        let Target { config, tls, place } = &self.target;
        let (client, mut connection) = match timeout(SETUP_LIMIT, config.connect(tls.clone())).await {
            Ok(Ok(parts)) => parts,
            Ok(Err(error)) => return failure::explain("connect", place, error),
            Err(_) => return failure::timed_out("connect", place, SETUP_LIMIT),
        };
        let echo = Notify::new();
        let messages = async {
            let mut messages = poll_fn(|context| connection.poll_message(context));
            loop {
                match messages.next().await {
                    Some(Ok(AsyncMessage::Notification(_))) => {
                        echo.notify_one();
                        heard(Heard::News);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return failure::explain("listen for new events", place, error),
                    None => {
                        let message = format!("the session that listens on {place} was closed");
                        return StoreError::new(StoreErrorKind::Unavailable, message);
                    }
                }
            }
        };
        let questions = async {
            match timeout(SETUP_LIMIT, self.set_up(&client)).await {
                Ok(Ok(())) => {
                    if timeout(ECHO_LIMIT, echo.notified()).await.is_err() {
                        return deaf(place);
                    }
                    heard(Heard::Listening);
                    self.keep_alive(&client).await
                }
                Ok(Err(error)) => error,
                Err(_) => failure::timed_out("listen for new events", place, SETUP_LIMIT),
            }
        };
        match future::select(pin!(messages), pin!(questions)).await {
            Either::Left((error, _)) | Either::Right((error, _)) => error,
        }
    }
}
