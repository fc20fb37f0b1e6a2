//! `postbox listen`: a receiver for developers.
//!
//! A request is read (`delivery`), verified, compared with what came before (`memory`), given the answer that was asked for
//! (`mood`), and told in one line (`line`); in the end everything is summed up (`tally`).

mod delivery;
mod line;
mod listener;
mod memory;
mod mood;
mod tally;

pub(crate) use line::Style;
pub(crate) use listener::Listener;
pub(crate) use mood::{Failure, Mood, Which};
