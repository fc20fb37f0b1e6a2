//! What drains a backlog, each in a process of its own so that its processor time is its own.

mod drained;
pub(crate) mod fanout;
pub(crate) mod naive;
mod observed;
pub(crate) mod relay;
mod standing;

pub(crate) use drained::Drained;
pub(crate) use standing::StandingRelay;
