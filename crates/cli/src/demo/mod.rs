//! The demo: a shop, a relay that is killed, a receiver that misbehaves, and a ledger that must add up.
//!
//! The shop and the receiver live in this process; the relay is the real command in a process of its own.

mod ledger;
mod narration;
mod play;
mod problem;
mod receiver;
mod relay_process;
mod shop;
mod stage;
mod whatsapp;

pub(crate) use ledger::Ledger;
pub(crate) use play::Play;
pub(crate) use problem::Problem;
pub(crate) use stage::Stage;
pub(crate) use whatsapp::{WhatsappLedger, WhatsappPlay};
