//! `postbox destinations disable` and `enable`, for endpoints and for destinations of the configuration file.

use clap::Args;

use super::directory::Directory;
use crate::error::CommandError;
use crate::output::{printable, say};

/// Longest reason, in bytes.
const MAX_REASON: usize = 500;

/// Send nothing there until it is enabled again; its events are kept, in order.
#[derive(Debug, Args)]
pub(crate) struct Disable {
    /// The destination.
    name: String,

    /// Why, for whoever looks at it.
    #[arg(long, value_name = "TEXT", default_value = "disabled by an operator")]
    reason: String,
}

/// Send there again, beginning with what was kept.
#[derive(Debug, Args)]
pub(crate) struct Enable {
    /// The destination.
    name: String,
}

impl Disable {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        if self.reason.len() > MAX_REASON {
            let message = format!("the reason has {} bytes", self.reason.len());
            return Err(CommandError::usage(message, format!("{MAX_REASON} at most")));
        }
        let (name, operations) = (&self.name, directory.operations());
        if directory.in_file(name).is_none() && operations.find_endpoint(name).await?.is_none() {
            return Err(directory.unknown(name).await?);
        }
        if operations.switch_endpoint(name, Some(&printable(&self.reason))).await? {
            say(format!(
                "{name} disabled; running relays stop sending to it within a second and keep its events"
            ))
        } else {
            say(format!("{name} was disabled already"))
        }
    }
}

impl Enable {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        let (name, operations) = (&self.name, directory.operations());
        let switched = operations.switch_endpoint(name, None).await?;
        if switched {
            return say(format!(
                "{name} enabled; running relays send to it within a second, first what was kept"
            ));
        }
        if directory.in_file(name).is_none() && operations.find_endpoint(name).await?.is_none() {
            return Err(directory.unknown(name).await?);
        }
        say(format!("{name} was enabled already"))
    }
}
