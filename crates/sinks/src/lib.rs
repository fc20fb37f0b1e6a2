//! Destinations that Postbox can send to: one room per kind, each behind a feature of its name. Beside them, what their
//! receivers need: [`standard_webhooks`].

#[cfg(feature = "standard-webhooks")]
pub mod standard_webhooks;
#[cfg(feature = "webhook")]
pub mod webhook;
