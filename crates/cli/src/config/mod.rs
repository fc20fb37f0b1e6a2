//! `postbox.toml`: what it may say, and every mistake in it told at once, with its line.

mod default;
mod destination;
mod document;
mod duration;
mod load;
mod mask;
mod pacing;
mod problem;
mod relay;
mod secret;
mod signing;
mod transport;
mod webhook;

pub(crate) use default::DEFAULT_TEXT;
pub(crate) use destination::DestinationConfig;
pub(crate) use duration::{parse_duration, show_duration};
pub(crate) use load::{Config, ConfigError, DEFAULT_FILE, Secrets};
pub(crate) use relay::WakeUpChoice;
pub(crate) use secret::SecretRef;
