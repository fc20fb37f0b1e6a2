//! All destinations: those of the configuration file and those of the table.

use postbox_core::delivery::DeliveryState;
use postbox_core::endpoint::{EndpointRecord, EndpointSettings, Settings};
use postbox_core::operations::{Operations, Selection};
use serde_json::{Map, Value};

use crate::cli::Global;
use crate::config::{Config, DestinationConfig, Secrets, nearest};
use crate::database::{Database, Target};
use crate::endpoints::WebhookEndpoints;
use crate::error::CommandError;

/// States of deliveries for which something is still to be done.
const UNFINISHED: [DeliveryState; 3] = [DeliveryState::Retry, DeliveryState::Waiting, DeliveryState::Held];

pub(super) struct Directory {
    config: Config,
    database: Database,
}

impl Directory {
    pub(super) fn open(global: &Global) -> Result<Self, CommandError> {
        let config = Config::load(global.config.as_deref(), Secrets::Trust)?;
        let database = Database::open(&Target::choose(global, &config)?)?;
        Ok(Self { config, database })
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) fn operations(&self) -> &dyn Operations {
        self.database.operations()
    }

    /// Destinations of the configuration file.
    pub(super) fn configured(&self) -> &[DestinationConfig] {
        &self.config.destinations
    }

    /// The one of this name in the configuration file.
    pub(super) fn in_file(&self, name: &str) -> Option<&DestinationConfig> {
        self.configured().iter().find(|found| found.name.value == name)
    }

    pub(super) fn webhooks(&self) -> Result<WebhookEndpoints, CommandError> {
        WebhookEndpoints::of(&self.config)
    }

    /// Says so when relays with this configuration would not use what is in the table.
    pub(super) fn warn_when_unused(&self) {
        if self.config.endpoints.enabled == Some(false) {
            eprintln!(
                "note: [endpoints] enabled = false in the configuration: its relays send to no endpoint"
            );
        }
    }

    /// The endpoint of this name.
    ///
    /// # Errors
    /// When there is none, with the one that was probably meant; when it is one of the configuration file.
    pub(super) async fn endpoint(&self, name: &str) -> Result<Stored, CommandError> {
        if self.in_file(name).is_some() {
            return Err(CommandError::usage(
                format!("{name:?} is a destination of the configuration file"),
                "change it there and restart the relays; here it can be tested, disabled and enabled",
            ));
        }
        match self.operations().find_endpoint(name).await? {
            Some(EndpointRecord { settings: Some(text), .. }) => Ok(Stored { text }),
            Some(_) => Err(CommandError::remains(
                format!(
                    "{name:?} has no settings: its row only switches a destination of a configuration file off"
                ),
                format!(
                    "give --config with that file, or remove the switch: postbox destinations enable {name}"
                ),
            )),
            None => Err(self.unknown(name).await?),
        }
    }

    /// The complaint that there is no destination of this name.
    pub(super) async fn unknown(&self, name: &str) -> Result<CommandError, CommandError> {
        let endpoints = self.operations().list_endpoints().await?;
        let names: Vec<&str> = (endpoints.iter().map(|record| record.name.as_str()))
            .chain(self.configured().iter().map(|found| found.name.value.as_str()))
            .collect();
        let help = match nearest(name, &names) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None if names.is_empty() => "there are none yet: postbox destinations add".to_owned(),
            None => "postbox destinations list shows those that there are".to_owned(),
        };
        Ok(CommandError::remains(format!("there is no destination {name:?}"), help))
    }

    /// Deliveries to this destination for which something is still to be done.
    pub(super) async fn unfinished(&self, name: &str) -> Result<u64, CommandError> {
        let to_it = Selection { destination: Some(name.to_owned()), ..Selection::default() };
        Ok(self.operations().count_deliveries(&to_it, &UNFINISHED).await?)
    }
}

/// An endpoint as it is stored.
pub(super) struct Stored {
    /// Its settings, byte for byte.
    pub(super) text: String,
}

impl Stored {
    /// Its settings as they are, also when they cannot be used.
    pub(super) fn object(&self) -> Map<String, Value> {
        match serde_json::from_str(&self.text) {
            Ok(Value::Object(object)) => object,
            _ => Map::new(),
        }
    }

    /// Its settings.
    ///
    /// # Errors
    /// When they cannot be used.
    pub(super) fn usable(&self, name: &str) -> Result<Box<EndpointSettings>, CommandError> {
        match Settings::read(Some(&self.text)) {
            Settings::Usable(settings) => Ok(settings),
            Settings::Unusable { reason, .. } => Err(CommandError::remains(
                format!("the settings of {name:?} cannot be used: {reason}"),
                format!("correct them: postbox destinations update {name}"),
            )),
            Settings::Switch => {
                Err(CommandError::remains(format!("{name:?} has no settings"), "add it anew"))
            }
        }
    }
}
