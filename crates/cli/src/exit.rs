//! Exit codes, a part of the interface: scripts and schedulers decide by them.

use std::process::ExitCode;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// A check did not hold, work remains, or what was asked for does not exist.
    Remains = 1,
    /// The command line or the configuration is wrong; nothing was started.
    Usage = 2,
    /// The database cannot be reached, or went away.
    DatabaseUnavailable = 3,
    /// The tables are missing, older or newer than this program.
    SchemaMismatch = 4,
    /// The database role may not do this.
    Denied = 5,
    /// Anything else went wrong.
    Failed = 6,
    /// A second signal ended the relay before it had drained.
    Interrupted = 130,
}

/// The table shown at the end of `postbox --help`.
pub(crate) const EXIT_CODES_HELP: &str = "\
Exit codes:
  0    done
  1    a check did not hold, work remains, or what was asked for does not exist
  2    the command line or the configuration is wrong; nothing was started
  3    the database cannot be reached
  4    the tables are missing, older or newer than this program
  5    the database role may not do this
  6    anything else went wrong
  130  ended by a second signal before the relay had drained";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_help() {
        for exit in [
            Exit::Ok,
            Exit::Remains,
            Exit::Usage,
            Exit::DatabaseUnavailable,
            Exit::SchemaMismatch,
            Exit::Denied,
            Exit::Failed,
            Exit::Interrupted,
        ] {
            let line = format!("\n  {:<5}", exit as u8);
            assert!(EXIT_CODES_HELP.contains(&line), "{exit:?} is not in the help");
        }
    }
}
