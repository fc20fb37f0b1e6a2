//! The WhatsApp demo: a shop, buyers with phones, a Cloud API that misbehaves in every way that matters, and a ledger of
//! what is on the phones.
//!
//! Meta's side is played in this process by `postbox_fake_whatsapp`; relay and webhook are the real commands, processes of
//! their own.

mod buyer;
mod ledger;
mod meta;
mod play;
mod webhook_process;

pub(crate) use ledger::WhatsappLedger;
pub(crate) use play::WhatsappPlay;
