//! `postbox.toml`: what it may say, and every mistake in it told at once, with its line.

mod default;
mod destination;
mod document;
mod endpoints;
mod load;
mod mask;
mod pacing;
mod problem;
mod relay;
mod secret;
mod signing;
mod transport;
mod webhook;
mod whatsapp;

pub(crate) use default::DEFAULT_TEXT;
pub(crate) use destination::{DestinationConfig, Reach};
pub(crate) use document::suggestion;
pub(crate) use load::{Config, ConfigError, DEFAULT_FILE, Secrets};
pub(crate) use postbox_core::duration::{parse_duration, show_duration};
pub(crate) use problem::nearest;
pub(crate) use relay::WakeUpChoice;
pub(crate) use secret::SecretRef;
