//! The receiving end of webhooks, on this machine: what `postbox listen`, the demo and
//! `postbox whatsapp-webhook` are made of.

mod server;

pub(crate) use server::{Answer, Arrived, Bounds, Receive, Server};
