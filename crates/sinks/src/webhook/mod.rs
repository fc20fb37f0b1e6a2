//! Webhooks: one HTTP POST per attempt.
//!
//! An attempt goes through the files of this room in order: [`WebhookSink`] (`sink`) writes the body once
//! (`envelope`), adds the headers (`head`, `trace_context`) and the signatures over exactly those bytes ([`crate::standard_webhooks`]), makes
//! the request (`http_client`), and reads what the answer means (`answer`).

mod answer;
mod config;
mod envelope;
mod head;
mod sink;
mod trace_context;

pub use crate::http_client::egress::{self, Egress};
pub use crate::http_client::{ClientIdentity, ConfigError, ProxyConfig};
pub use config::WebhookConfig;
pub use envelope::{DEFAULT_SOURCE, Envelope};
pub use sink::WebhookSink;
