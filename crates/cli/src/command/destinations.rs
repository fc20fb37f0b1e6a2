//! `postbox destinations`: destinations kept as data, and the switches of those in the configuration file.

mod add;
mod directory;
mod list;
mod remove;
mod rotate_secret;
mod secret;
mod settings;
mod show;
mod switch;
mod test;
mod update;

use clap::Subcommand;

use self::directory::Directory;
use crate::cli::Global;
use crate::error::CommandError;

/// Manage destinations: add and change endpoints while relays run, switch destinations off and on.
///
/// Endpoints are kept in the database, and running relays take a change over within a second. Those of the
/// configuration file are listed too; they can be tested and switched.
#[derive(Debug, Subcommand)]
pub(crate) enum Destinations {
    Add(Box<add::Add>),
    List(list::List),
    Show(show::Show),
    Update(Box<update::Update>),
    Disable(switch::Disable),
    Enable(switch::Enable),
    Remove(remove::Remove),
    Test(test::Test),
    RotateSecret(rotate_secret::RotateSecret),
}

impl Destinations {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let directory = Directory::open(global)?;
        match self {
            Self::Add(add) => add.run(&directory).await,
            Self::List(list) => list.run(&directory).await,
            Self::Show(show) => show.run(&directory).await,
            Self::Update(update) => update.run(&directory).await,
            Self::Disable(disable) => disable.run(&directory).await,
            Self::Enable(enable) => enable.run(&directory).await,
            Self::Remove(remove) => remove.run(&directory).await,
            Self::Test(test) => test.run(&directory).await,
            Self::RotateSecret(rotate) => rotate.run(&directory).await,
        }
    }
}
