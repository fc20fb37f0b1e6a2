//! Destinations that Postbox can send to: one room per kind, each behind a feature of its name. Beside them, what their
//! receivers need: [`standard_webhooks`]; and what those that speak HTTP share.

#[cfg(feature = "http-client")]
mod http_client;
#[cfg(feature = "standard-webhooks")]
pub mod standard_webhooks;
#[cfg(feature = "webhook")]
pub mod webhook;
#[cfg(feature = "whatsapp")]
pub mod whatsapp;
