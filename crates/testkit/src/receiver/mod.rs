//! A webhook receiver that records what it really got, and misbehaves on request.
//!
//! It speaks just enough HTTP/1.1 to be a fast, honest peer (keep-alive, `content-length`), and everything else by
//! script: see [`Answer`].

mod answer;
mod connection;
mod record;
mod request;
mod server;
mod tls;
mod wire;

pub use answer::{Answer, Script};
pub use record::{Received, RecordFile};
pub use server::{Receiver, Recording};
pub use tls::ClientFiles;
