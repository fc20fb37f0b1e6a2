//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod dead_letters;
pub(crate) mod demo;
pub(crate) mod destinations;
pub(crate) mod events;
pub(crate) mod grants;
pub(crate) mod inbox;
pub(crate) mod init;
pub(crate) mod listen;
pub(crate) mod migrate;
pub(crate) mod prune;
pub(crate) mod reconcile;
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod shards;
pub(crate) mod status;
mod story;
pub(crate) mod whatsapp_webhook;
