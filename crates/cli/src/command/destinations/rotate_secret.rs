//! `postbox destinations rotate-secret`.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::directory::Directory;
use super::secret;
use super::settings::unusable;
use crate::config::{parse_duration, show_duration};
use crate::error::CommandError;
use crate::output::{say, say_json};

/// Sign with a new secret, and for a while with the old ones too, so that receivers can change over.
#[derive(Debug, Args)]
pub(crate) struct RotateSecret {
    /// The endpoint.
    name: String,

    /// Where the new secret is kept: env:NAME or file:PATH [default: one is drawn and printed].
    #[arg(long, value_name = "PLACE")]
    secret: Option<String>,

    /// How long the old secrets sign too; 0s ends them at once.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_duration)]
    keep: Duration,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl RotateSecret {
    pub(super) async fn run(&self, directory: &Directory) -> Result<(), CommandError> {
        let name = &self.name;
        let stored = directory.endpoint(name).await?;
        let secret = secret::choose(self.secret.as_deref())?;
        let settings = stored.usable(name)?;
        let trial = directory.webhooks()?.webhook(&settings, std::slice::from_ref(&secret));
        trial.map_err(|problem| unusable(&problem))?;
        if !directory.operations().add_secret(name, &secret.text, self.keep).await? {
            return Err(directory.unknown(name).await?);
        }
        directory.warn_when_unused();
        let drawn = self.secret.is_none().then_some(secret.text.as_str());
        let keep = show_duration(self.keep);
        if self.json {
            return say_json(&json!({ "name": name, "secret": drawn, "old_secrets_sign_for": keep }));
        }
        say(match self.keep.is_zero() {
            true => format!("{name} signs with the new secret only"),
            false => format!("{name} signs with the new secret, and for {keep} with the old ones too"),
        })?;
        match drawn {
            Some(drawn) => say(format!("secret, shown only now: {drawn}")),
            None => Ok(()),
        }
    }
}
