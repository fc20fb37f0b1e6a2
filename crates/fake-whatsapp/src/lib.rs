//! A Cloud API of WhatsApp that sends nothing.
//!
//! It takes requests as Meta's does, checks them as Meta's does, keeps what it took as people's phones would ([`Ledger`]),
//! and sends signed statuses to a callback. What it does with each message is planned ([`Plan`], [`Mood`]): it can lose
//! answers, refuse by any error code, and send statuses late, twice, out of order or before the answer. It speaks plain
//! HTTP on an address of this machine and is for demonstrations and tests.
//!
//! The shapes are those of Meta's pages *Messages* (requests and answers), *WhatsApp error codes* and *Status messages
//! webhook reference*.

mod api;
mod callback;
mod check;
mod connection;
mod http;
mod ledger;
mod mood;
mod refusal;
mod status;

pub use api::{FakeApi, Settings};
pub use callback::Callback;
pub use ledger::{Ledger, Message};
pub use mood::{Incoming, Mood, Plan, Take};
pub use refusal::Refusal;
pub use status::{SIGNATURE_HEADER, Status, signature};
