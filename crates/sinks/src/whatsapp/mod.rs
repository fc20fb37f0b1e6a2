//! WhatsApp: one message per attempt, by the Cloud API of the WhatsApp Business Platform.
//!
//! An attempt goes through the files of this room in order: [`WhatsappSink`] (`sink`) makes the request of what the
//! producer stored (`message`: `exact` or `short`, `recipient`), marks it so that a later status message finds its event
//! ([`postbox_core::callback`]), posts it, and reads what the answer means (`answer`) by the table of Meta's error codes
//! ([`errors`]).
//!
//! The Cloud API has no idempotency key: a request that is repeated is a second message on somebody's phone. So an
//! attempt is *delivered* only with a message id (`wamid`) in hand, *transient* only when nothing was written or the API
//! said that it did not take the message, and everything between is *unknown*.

mod answer;
mod config;
pub mod errors;
mod exact;
mod fields;
mod message;
mod numbers;
mod recipient;
mod short;
mod sink;
pub mod statuses;
mod token;

pub use crate::http_client::egress::{self, Egress};
pub use crate::http_client::{ClientIdentity, ConfigError, ProxyConfig};
pub use config::{DEFAULT_BASE_URL, DEFAULT_LANGUAGE, DEFAULT_VERSION, WhatsappConfig};
pub use numbers::shorten_numbers;
pub use sink::WhatsappSink;
pub use token::Token;
