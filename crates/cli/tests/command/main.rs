//! The command as its users meet it: a real process, its output, its exit code.
#![expect(clippy::unwrap_used, reason = "a panic is the failing assertion, in what the tests share as well")]

mod bench;
mod careless;
mod configuration;
mod dead_letters;
mod destinations;
mod endpoints;
mod events;
mod grants;
mod inbox;
mod listening;
mod postgres;
mod pruning;
mod python;
mod receiver;
mod reconciling;
mod relaying;
mod shards;
mod status;
mod talking;
mod travelling;
mod whatsapp;
mod whatsapp_chaos;
mod whatsapp_webhook;
