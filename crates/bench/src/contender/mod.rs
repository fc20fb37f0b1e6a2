//! What drains a backlog, each in a process of its own so that its processor time is its own.

mod drained;
mod observed;
pub(crate) mod naive;
pub(crate) mod relay;

pub(crate) use drained::Drained;
