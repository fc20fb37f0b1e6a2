//! The receiving end of webhooks, on this machine: what `postbox listen` and the demo are made of.

mod server;

pub(crate) use server::{Answer, Arrived, Receive, Server};
