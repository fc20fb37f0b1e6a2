//! The command as its users meet it: a real process, its output, its exit code.

mod bench;
mod careless;
mod configuration;
mod dead_letters;
mod events;
mod postgres;
mod pruning;
mod receiver;
mod relaying;
mod status;
