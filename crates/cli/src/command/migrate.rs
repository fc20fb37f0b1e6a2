//! `postbox migrate`.

use clap::Args;

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
}

impl Migrate {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let target = Target::find(global)?;
        if self.print {
            return say(target.migration_sql().trim_end());
        }
        let database = Database::open(&target)?;
        let applied = database.operations().migrate().await?;
        match applied.as_slice() {
            [] => say(format!("{target}: the tables are current")),
            [one] => say(format!("{target}: applied migration {one}")),
            [first, .., last] => say(format!("{target}: applied migrations {first} to {last}")),
        }
    }
}
