//! `postbox init`: the commented default configuration, to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use clap::Args;

use crate::cli::Global;
use crate::config::{DEFAULT_FILE, DEFAULT_TEXT};
use crate::error::CommandError;
use crate::output::say;

/// Write a commented postbox.toml.
///
/// It shows every key, its default and what it means. --config names another file.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Replace the file if there is one.
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(crate) fn run(&self, global: &Global) -> Result<(), CommandError> {
        let path = global.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        let mut options = OpenOptions::new();
        options.write(true);
        if self.force {
            options.create(true).truncate(true);
        } else {
            options.create_new(true);
        }
        options.open(path).and_then(|mut file| file.write_all(DEFAULT_TEXT.as_bytes())).map_err(|error| {
            match error.kind() {
                ErrorKind::AlreadyExists => CommandError::usage(
                    format!("{} exists and was left as it is", path.display()),
                    "--force replaces it; --config names another file",
                ),
                _ => CommandError::usage(
                    format!("{} cannot be written: {error}", path.display()),
                    "check that its directory exists and may be written",
                ),
            }
        })?;
        say(format!(
            "wrote {}\n\nNext:\n  1. set [database] url there, or POSTBOX_DATABASE_URL\n  2. postbox migrate\n  \
             3. describe a [[destination]]\n  4. postbox relay",
            path.display()
        ))
    }
}
