//! `postbox destinations update`.

use clap::Args;
use postbox_core::endpoint::KEYS;

use super::directory::Directory;
use super::settings::{SettingsArgs, checked, unusable};
use crate::config::suggestion;
use crate::error::CommandError;
use crate::output::say;

/// Change settings of an endpoint; what is not named stays as it is.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The endpoint.
    name: String,

    #[command(flatten)]
    settings: SettingsArgs,

    /// Give a key its default again; may be repeated.
    #[arg(long, value_name = "KEY", help_heading = "Settings")]
    unset: Vec<String>,
}

impl Update {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        let name = &self.name;
        if self.settings.is_empty() && self.unset.is_empty() {
            return Err(CommandError::usage(
                "nothing to change was given",
                "name what shall change, for example --timeout 5s, or --unset timeout",
            ));
        }
        let stored = directory.endpoint(name).await?;
        let mut object = stored.object();
        for key in &self.unset {
            let key = key.replace('-', "_");
            // A key that is none can be there too, and must be possible to take out.
            if object.remove(&key).is_none() && !KEYS.contains(&key.as_str()) {
                let help = suggestion(&key, &KEYS, "keys");
                return Err(CommandError::usage(format!("there is no key `{key}`"), help));
            }
        }
        self.settings.apply(&mut object)?;
        let settings = checked(object)?;
        directory.webhooks()?.webhook(&settings, &[]).map_err(|problem| unusable(&problem))?;
        let text = settings.to_json().to_string();
        if !directory.operations().change_endpoint(name, &stored.text, &text).await? {
            return Err(CommandError::remains(
                format!("{name:?} was changed by somebody else at the same time; nothing was changed here"),
                "look at it and run the command again",
            ));
        }
        directory.warn_when_unused();
        say(format!("{name} changed; running relays take it over within a second"))
    }
}
