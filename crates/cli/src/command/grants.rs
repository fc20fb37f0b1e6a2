//! `postbox grants`: the database roles, and the least that each of them needs.

use clap::{Args, ValueEnum};
use postbox_postgres::PostgresStore;
use postbox_postgres::grants::{Duty, grants_sql};
use secrecy::ExposeSecret;

use crate::cli::Global;
use crate::database::Target;
use crate::error::CommandError;
use crate::output::say;

/// Print the SQL that gives database roles the least they need (PostgreSQL).
///
/// Each role is created, without a login, when there is none of its name: grant it to the users that log in. Running it
/// again changes nothing.
#[derive(Debug, Args)]
pub(crate) struct Grants {
    /// Roles [default: all five].
    #[arg(value_name = "ROLE", value_enum)]
    roles: Vec<Role>,

    /// Name of the database role, when one is asked for [default: postbox_ and the role].
    #[arg(long, value_name = "NAME")]
    to: Option<String>,

    /// Run the SQL instead, in one transaction, as the owner of the tables.
    #[arg(long)]
    apply: bool,
}

/// What a database role is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Writes events: INSERT on outbox, or the function outbox_enqueue.
    Producer,
    /// Runs the relay and the operator's commands.
    Relay,
    /// Looks, at everything but payloads.
    Reader,
    /// Accepts events: the function inbox_accept.
    Consumer,
    /// Runs `postbox whatsapp-webhook`.
    Reporter,
}

impl From<Role> for Duty {
    fn from(role: Role) -> Self {
        match role {
            Role::Producer => Self::Producer,
            Role::Relay => Self::Relay,
            Role::Reader => Self::Reader,
            Role::Consumer => Self::Consumer,
            Role::Reporter => Self::Reporter,
        }
    }
}

impl Grants {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let Target::Postgres { url, schema } = Target::find(global)? else {
            return Err(CommandError::usage(
                "a SQLite database has no roles",
                "who may read and write the file decides there",
            ));
        };
        let named = self.named_roles()?;
        let sql: Vec<String> =
            named.iter().map(|(duty, name)| grants_sql(schema.as_deref(), *duty, name)).collect();
        let sql = sql.join("\n");
        if !self.apply {
            return say(sql.trim_end());
        }
        PostgresStore::connect(url.expose_secret(), schema.as_deref())?.apply_grants(&sql).await?;
        for (duty, name) in named {
            say(format!("{name}: may do what a {} needs", duty.as_str()))?;
        }
        Ok(())
    }

    fn named_roles(&self) -> Result<Vec<(Duty, String)>, CommandError> {
        let duties: Vec<Duty> = match self.roles.as_slice() {
            [] => Duty::ALL.to_vec(),
            some => some.iter().map(|&role| role.into()).collect(),
        };
        match (&self.to, duties.as_slice()) {
            (Some(name), [one]) => Ok(vec![(*one, name.clone())]),
            (Some(_), _) => Err(CommandError::usage(
                "--to names one database role",
                "say which: postbox grants producer --to shop",
            )),
            (None, _) => {
                Ok(duties.into_iter().map(|duty| (duty, format!("postbox_{}", duty.as_str()))).collect())
            }
        }
    }
}
