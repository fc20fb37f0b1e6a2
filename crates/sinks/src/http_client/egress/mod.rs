//! Which addresses requests may go to.
//!
//! An address that a user supplies can point into the network that the relay runs in: at a database without a password,
//! or at the cloud's metadata service (server-side request forgery). What a URL looks like says nothing about that, since
//! names can resolve to anything and to something else a moment later. So the policy is asked when a connection is opened,
//! about every answer of the one look-up whose addresses are then dialled.

mod network;
mod policy;
mod special_purpose;

pub use network::{Network, NetworkError};
pub use policy::{Egress, EgressError};
