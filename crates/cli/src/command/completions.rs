//! `postbox completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::CommandError;
use crate::output::say;

/// Print the completion script of a shell.
///
/// For example: postbox completions bash > /etc/bash_completion.d/postbox
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "postbox", &mut script);
        say(String::from_utf8_lossy(&script).trim_end())
    }
}
