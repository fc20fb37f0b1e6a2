//! The model of Postbox and everything in it that decides something.
//!
//! Nothing in this crate performs I/O, reads a clock or draws a random number: time and seeds come in as
//! arguments, so every decision can be replayed. The seams to the outside are two traits, [`store::Store`]
//! (the database) and [`sink::Sink`] (a destination).

pub mod callback;
pub mod delivery;
pub mod destination;
pub mod duration;
pub mod endpoint;
pub mod engine;
pub mod event;
pub mod inbox;
pub mod lease;
pub mod operations;
pub mod outcome;
pub mod outgoing;
pub mod reports;
pub mod retry;
pub mod route;
pub mod sink;
pub mod store;
pub mod wake_up;
