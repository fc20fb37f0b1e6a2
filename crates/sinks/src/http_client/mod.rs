//! One POST over HTTP/1.1, as every destination that is reached by HTTP makes it.
//!
//! An attempt takes a keep-alive connection (`pool`) or opens one (`dial`: `names`, [`egress`], `proxy`, `tls`), hands
//! it the request (`client`) and reads the answer within bounds (`body`). What the request says and what the answer means
//! is the destination's own business.
//!
//! The one question that decides between *transient* and *unknown* is whether a byte of the request may have left.
//! Up to the moment the request is handed to a connection everything is transient; from then on only hyper's giving
//! the unsent request back proves that nothing left, and every other ending without an answer is unknown.

mod body;
mod client;
mod config;
mod dial;
pub mod egress;
mod endpoint;
mod names;
mod pool;
mod proxy;
pub(crate) mod text;
mod tls;

pub(crate) use body::{is_encoded, retry_after};
#[cfg(feature = "whatsapp")]
pub(crate) use client::Answer;
pub(crate) use client::{Client, no_answer};
pub(crate) use config::{ClientConfig, Hints};
pub use config::{ClientIdentity, ConfigError, ProxyConfig};
