//! What a request's body is, and which headers describe it.

mod choice;
mod cloud_events;
mod json;

pub(super) use choice::Message;
pub use choice::{DEFAULT_SOURCE, Envelope};
