//! Receiving events: verify the request, accept the event, act on it, and answer, in this order.
//!
//! A [`Receiver`] turns a request's headers and raw body into an [`Incoming`] event, or into the [`Answer`] to give
//! instead. `receive` of the driver in use ([`tokio_postgres`](crate::tokio_postgres::receive),
//! [`sqlx`](crate::sqlx::receive), [`rusqlite`](crate::rusqlite::receive)) then does the rest in one transaction: the
//! inbox, the application's function, and whatever that writes, further events in the outbox included. The answer is
//! 2xx only after the commit; a duplicate gets 2xx without the function being called again.
//!
//! With the feature `axum`, [`Incoming`] is an extractor and [`Answer`] a response, so that a handler is:
//!
//! ```text
//! async fn hooks(State(app): State<App>, event: Incoming) -> Answer {
//!     let Ok(mut tx) = app.pool.begin().await else { return Answer::Unavailable };
//!     postbox::sqlx::receive(tx, "billing", &event, async |tx, event| { … Ok(()) }).await
//! }
//! ```

mod answer;
#[cfg(feature = "axum")]
mod axum;
mod incoming;
mod verifying;

pub use answer::{Answer, HandlerError};
pub use incoming::Incoming;
pub use postbox_sinks::standard_webhooks::{SecretError, TOLERANCE, VerifyError};
pub use verifying::{DEFAULT_MAX_BODY_BYTES, Receiver};
