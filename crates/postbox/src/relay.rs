//! The relay in your own process: give [`run`] a store, and for each destination what the engine has to know and a
//! [`Sink`] that reaches it. The example `shop` shows it whole.
//!
//! A webhook is [`WebhookSink`], a number that sends WhatsApp messages is [`WhatsappSink`]; anything else implements
//! [`Sink`], whose contract says what "delivered" may mean.

#[cfg(any(feature = "tokio-postgres", feature = "sqlx"))]
pub use postbox_postgres::PostgresStore;
#[cfg(feature = "rusqlite")]
pub use postbox_sqlite::SqliteStore;

pub use postbox_core::delivery::DestinationName;
pub use postbox_core::destination::{
    BreakerPolicy, DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT, Destination, EvidencePolicy, Ordering, RateLimit,
    Treatment, WithoutEvidence,
};
pub use postbox_core::endpoint::{Endpoint, EndpointSecret, EndpointSettings};
pub use postbox_core::engine::{Counters, Limits};
pub use postbox_core::event::{Event, Payload};
pub use postbox_core::operations::Operations;
pub use postbox_core::outcome::{Confirmation, Failure, FailureClass, Outcome, Scope};
pub use postbox_core::retry::{OnExhausted, RetryPolicy};
pub use postbox_core::route::Route;
pub use postbox_core::sink::{Attempt, Sink};
pub use postbox_core::store::{Store, StoreError, StoreErrorKind};
pub use postbox_relay::{Binding, Endpoints, RelayConfig, RelayError, Summary, run};
pub use postbox_sinks::standard_webhooks::SigningSecret;
pub use postbox_sinks::webhook::{
    ClientIdentity, ConfigError, Egress, Envelope, ProxyConfig, WebhookConfig, WebhookSink,
};
pub use postbox_sinks::whatsapp::{Token, WhatsappConfig, WhatsappSink};
pub use tokio_util::sync::CancellationToken;
