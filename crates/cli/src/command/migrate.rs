//! `postbox migrate`.

use clap::{Args, ValueEnum};

use crate::cli::Global;
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::output::say;

/// Create or upgrade the tables.
///
/// Does nothing when they are current; safe to run from several machines at once.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Print the SQL instead, for people who run their own migration tool. Connects to nothing.
    #[arg(long)]
    print: bool,

    /// Only the inbox, for the database of a consumer that has no outbox.
    #[arg(long, conflicts_with = "notify")]
    inbox: bool,

    /// Have every transaction that writes events announce it (PostgreSQL), for relays with wake_up = "notify"; or end
    /// that. Producers pay for it: docs/operations.md.
    #[arg(long, value_enum, value_name = "ON|OFF", conflicts_with = "print")]
    notify: Option<Switch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl Migrate {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let target = Target::find(global)?;
        if self.print {
            let sql = if self.inbox { target.inbox_migration_sql() } else { target.migration_sql() };
            return say(sql.trim_end());
        }
        let database = Database::open(&target)?;
        let applied = if self.inbox {
            database.inbox().migrate_inbox().await?
        } else {
            database.operations().migrate().await?
        };
        match applied.as_slice() {
            [] => say(format!("{target}: the tables are current")),
            [one] => say(format!("{target}: applied migration {one}")),
            [first, .., last] => say(format!("{target}: applied migrations {first} to {last}")),
        }?;
        match self.notify {
            None => Ok(()),
            Some(switch) => {
                target.announce_events(switch == Switch::On).await?;
                let now = if switch == Switch::On { "are" } else { "are not" };
                say(format!("{target}: new events {now} announced"))
            }
        }
    }
}
