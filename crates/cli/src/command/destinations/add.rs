//! `postbox destinations add`.

use clap::Args;
use postbox_core::destination::check_name;
use serde_json::{Map, json};

use super::directory::Directory;
use super::secret;
use super::settings::{SettingsArgs, checked, unusable};
use super::show::shown_settings;
use crate::error::CommandError;
use crate::output::{say, say_json};

/// Add an endpoint. Without --secret one is drawn and printed, this once.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Unique and stable: it is stored with every delivery.
    name: String,

    #[command(flatten)]
    settings: SettingsArgs,

    /// Where the secret is kept that signs requests (Standard Webhooks): env:NAME or file:PATH.
    #[arg(long, value_name = "PLACE", help_heading = "Signing")]
    secret: Option<String>,

    /// Do not sign requests.
    #[arg(long, conflicts_with = "secret", help_heading = "Signing")]
    unsigned: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Add {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        let name = &self.name;
        check_name(name).map_err(|problem| {
            CommandError::usage(format!("{name:?} is no name for a destination"), problem)
        })?;
        if directory.in_file(name).is_some() {
            return Err(CommandError::usage(
                format!("{name:?} is a destination of the configuration file"),
                "names are stored with every delivery, so each must be unique: choose another one",
            ));
        }
        let mut object = Map::new();
        self.settings.apply(&mut object)?;
        let settings = checked(object)?;
        let secret = if self.unsigned { None } else { Some(secret::choose(self.secret.as_deref())?) };
        directory.webhooks()?.webhook(&settings, secret.as_slice()).map_err(|problem| unusable(&problem))?;
        let text = secret.as_ref().map(|secret| secret.text.as_str());
        if !directory.operations().add_endpoint(name, &settings.to_json().to_string(), text).await? {
            return Err(CommandError::remains(
                format!("there is a destination {name:?} already"),
                format!("change it: postbox destinations update {name}"),
            ));
        }
        directory.warn_when_unused();
        let drawn = text.filter(|_| self.secret.is_none());
        if self.json {
            let settings = shown_settings(&settings);
            return say_json(&json!({ "name": name, "secret": drawn, "settings": settings }));
        }
        say(format!("{name} added; running relays send to it within a second"))?;
        match drawn {
            Some(drawn) => say(format!("secret, shown only now: {drawn}")),
            None => Ok(()),
        }
    }
}
