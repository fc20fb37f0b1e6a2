//! Webhooks: one HTTP POST per attempt.
//!
//! An attempt goes through the files of this room in order: [`WebhookSink`] (`sink`) writes the body once
//! (`envelope`), adds the headers (`head`, `trace_context`) and the signatures over exactly those bytes ([`crate::standard_webhooks`]), takes a
//! keep-alive connection (`pool`) or opens one (`dial`: `names`, `egress`, `proxy`, `tls`), and reads what the answer means (`answer`).
//!
//! The one question that decides between *transient* and *unknown* is whether a byte of the request may have left.
//! Up to the moment the request is handed to a connection everything is transient; from then on only hyper's giving
//! the unsent request back proves that nothing left, and every other ending without an answer is unknown.

mod answer;
mod config;
mod dial;
pub mod egress;
mod endpoint;
mod envelope;
mod head;
mod names;
mod pool;
mod proxy;
mod sink;
mod tls;
mod trace_context;

pub use config::{ClientIdentity, ConfigError, ProxyConfig, WebhookConfig};
pub use egress::Egress;
pub use envelope::{DEFAULT_SOURCE, Envelope};
pub use sink::WebhookSink;
