//! Writing events: into the outbox, the naive table, or a plain table with the outbox's own indexes.

mod layout;
mod writers;

pub(crate) use layout::Layout;
pub(crate) use writers::{Aggregates, Stop, Written, write};
