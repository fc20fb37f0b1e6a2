//! Destinations that Postbox can send to: one room per kind, each behind a feature of its name.

#[cfg(feature = "webhook")]
pub mod webhook;
