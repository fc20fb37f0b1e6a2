//! Logs of the relay, on standard error.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::error::CommandError;

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging; `RUST_LOG` chooses what, `info` without it.
///
/// # Errors
/// When `RUST_LOG` cannot be read.
pub(crate) fn start(format: LogFormat) -> Result<(), CommandError> {
    let wanted = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or("info")).map_err(|error| {
        CommandError::usage(
            format!("RUST_LOG cannot be used: {error}"),
            "write for example RUST_LOG=info,postbox_relay=debug",
        )
    })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            builder.with_ansi(colours).with_target(false).init();
        }
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
