//! Everything that can end a command, worded for the person who ran it.

use miette::Diagnostic;
use postbox_core::store::{StoreError, StoreErrorKind};

use crate::config::ConfigError;
use crate::demo;
use crate::exit::Exit;

/// Why a command ended early.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum CommandError {
    /// The configuration cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Config(#[from] ConfigError),

    /// The command line cannot be used.
    #[error("{message}")]
    Usage {
        message: String,
        #[help]
        help: String,
    },

    /// The database could not do it.
    #[error("{message}")]
    Store {
        kind: StoreErrorKind,
        message: String,
        #[help]
        help: Option<String>,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },

    /// What was asked for does not hold, does not exist or is not finished.
    #[error("{message}")]
    Remains {
        message: String,
        #[help]
        help: Option<String>,
    },

    /// The demo could not be shown.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Demo(#[from] demo::Problem),

    /// Standard output cannot be written.
    #[error("the output cannot be written")]
    Output(#[from] std::io::Error),
}

impl CommandError {
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: help.into() }
    }

    pub(crate) fn remains(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Remains { message: message.into(), help: Some(help.into()) }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Usage { .. } => Exit::Usage,
            Self::Remains { .. } => Exit::Remains,
            Self::Demo(_) | Self::Output(_) => Exit::Failed,
            Self::Store { kind, .. } => match kind {
                StoreErrorKind::Unavailable => Exit::DatabaseUnavailable,
                StoreErrorKind::SchemaMissing | StoreErrorKind::SchemaNewer => Exit::SchemaMismatch,
                StoreErrorKind::Denied => Exit::Denied,
                StoreErrorKind::Input => Exit::Usage,
                StoreErrorKind::Conflict | StoreErrorKind::Internal => Exit::Failed,
            },
        }
    }

    /// Whether the reader of our output went away, as `head` does; then there is nobody to complain to.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let help = match error.kind {
            StoreErrorKind::Unavailable => Some(
                "check that the database runs and that the URL (--database-url, POSTBOX_DATABASE_URL or [database] url) is right",
            ),
            StoreErrorKind::Conflict => Some("another transaction was in the way; run the command again"),
            StoreErrorKind::SchemaMissing => Some("run `postbox migrate` with the same database and schema"),
            StoreErrorKind::SchemaNewer => {
                Some("use the newer version of postbox that migrated this database")
            }
            StoreErrorKind::Denied => {
                Some("`postbox grants` prints what each role needs (docs/configuration.md)")
            }
            StoreErrorKind::Input | StoreErrorKind::Internal => None,
        };
        Self::Store {
            kind: error.kind,
            message: error.message,
            help: help.map(Into::into),
            source: error.source,
        }
    }
}
