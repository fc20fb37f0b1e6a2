//! From a database URL to a store.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use postbox_core::inbox::Inbox;
use postbox_core::operations::Operations;
use postbox_core::outgoing::Outgoing;
use postbox_core::reports::Reports;
use postbox_core::store::Store;
use postbox_core::wake_up::WakeUp;
use postbox_postgres::{NotifyWakeUp, PostgresStore};
use postbox_sqlite::SqliteStore;
use secrecy::{ExposeSecret, SecretString};

use crate::cli::Global;
use crate::config::{Config, Secrets, WakeUpChoice};
use crate::error::CommandError;

/// Schemes of databases that this build knows, as an error lists them.
const KNOWN: &str = "this build knows postgres://user@host/database and sqlite:path/to/file.db";

/// Which database, before anything connects to it. Shows itself without a password.
pub(crate) enum Target {
    /// A PostgreSQL database, and the schema in it when not the connection's own.
    Postgres { url: SecretString, schema: Option<String> },
    /// A SQLite file.
    Sqlite { path: PathBuf },
}

impl Target {
    /// What the command line, the environment or the file says, in this order.
    ///
    /// # Errors
    /// When the file is wrong, no database is named anywhere, or its URL cannot be used.
    pub(crate) fn find(global: &Global) -> Result<Self, CommandError> {
        Self::choose(global, &Config::load(global.config.as_deref(), Secrets::Trust)?)
    }

    /// As [`Target::find`], with the file already read.
    ///
    /// # Errors
    /// When no database is named anywhere, or its URL cannot be used.
    pub(crate) fn choose(global: &Global, config: &Config) -> Result<Self, CommandError> {
        let given = global.database_url.as_deref().filter(|url| !url.is_empty());
        let Some(url) = given.or(config.database_url.as_deref()) else {
            let file = match &config.file {
                Some(path) => format!("[database] url in {}", path.display()),
                None => "[database] url in postbox.toml (`postbox init` writes one)".into(),
            };
            return Err(CommandError::usage(
                "no database is named",
                format!("give --database-url, POSTBOX_DATABASE_URL, or {file}; {KNOWN}"),
            ));
        };
        Self::parse(url, global.schema.as_deref().or(config.schema.as_deref()))
    }

    /// What a URL says.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) fn parse(url: &str, schema: Option<&str>) -> Result<Self, CommandError> {
        // The URL itself is in no message: it may hold a password.
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            "postgres" | "postgresql" => {
                Ok(Self::Postgres { url: url.into(), schema: schema.map(str::to_owned) })
            }
            "sqlite" => {
                if schema.is_some() {
                    return Err(CommandError::usage(
                        "a SQLite database has no schemas",
                        "leave out --schema and [database] schema",
                    ));
                }
                Ok(Self::Sqlite { path: postbox_sqlite::parse_url(url)? })
            }
            "mysql" | "mariadb" => Err(CommandError::usage(format!("{scheme} is not in this build"), KNOWN)),
            _ if scheme.chars().all(|c| c.is_ascii_alphanumeric()) && !scheme.is_empty() => {
                Err(CommandError::usage(format!("there is no database of scheme \"{scheme}:\""), KNOWN))
            }
            _ => Err(CommandError::usage("the database URL has no scheme", KNOWN)),
        }
    }

    /// Switches the announcement of new events.
    ///
    /// # Errors
    /// When the database has none, cannot be reached, or refuses.
    pub(crate) async fn announce_events(&self, on: bool) -> Result<(), CommandError> {
        match self {
            Self::Postgres { url, schema } => {
                let store = PostgresStore::connect(url.expose_secret(), schema.as_deref())?;
                Ok(store.announce_events(on).await?)
            }
            Self::Sqlite { .. } => Err(only_postgres("--notify")),
        }
    }

    /// What tells the relay of new events before its next poll; `None` for polling alone.
    ///
    /// # Errors
    /// When this database does not have it.
    pub(crate) fn wake_up(&self, choice: WakeUpChoice) -> Result<Option<Arc<dyn WakeUp>>, CommandError> {
        match (choice, self) {
            (WakeUpChoice::Poll, _) => Ok(None),
            (WakeUpChoice::Notify, Self::Postgres { url, schema }) => {
                Ok(Some(Arc::new(NotifyWakeUp::new(url.expose_secret(), schema.as_deref())?)))
            }
            (WakeUpChoice::Notify, Self::Sqlite { .. }) => Err(only_postgres("wake_up = \"notify\"")),
        }
    }

    /// The SQL that `postbox migrate` would run on an empty database.
    pub(crate) fn migration_sql(&self) -> String {
        match self {
            Self::Postgres { schema, .. } => postbox_postgres::schema::migration_sql(schema.as_deref()),
            Self::Sqlite { .. } => postbox_sqlite::migration_sql(),
        }
    }

    /// The SQL that `postbox migrate --inbox` would run on an empty database.
    pub(crate) fn inbox_migration_sql(&self) -> String {
        match self {
            Self::Postgres { schema, .. } => postbox_postgres::schema::inbox_migration_sql(schema.as_deref()),
            Self::Sqlite { .. } => postbox_sqlite::inbox_migration_sql(),
        }
    }
}

fn only_postgres(what: &str) -> CommandError {
    let help = "SQLite is polled: a shorter [relay] poll_interval makes it quicker";
    CommandError::usage(format!("{what} needs PostgreSQL"), help)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres { url, schema } => {
                write!(f, "{}", without_password(url.expose_secret()))?;
                schema.as_ref().map_or(Ok(()), |schema| write!(f, " (schema {schema})"))
            }
            Self::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
        }
    }
}

/// Scheme, user, host and database of `url`; parameters may hold a password too and are left out.
fn without_password(url: &str) -> String {
    let plain = url.split_once('?').map_or(url, |(plain, _)| plain);
    let Some((scheme, rest)) = plain.split_once("://") else { return "postgres".into() };
    match rest.rsplit_once('@') {
        Some((user, place)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{scheme}://{user}@{place}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

/// An open database.
pub(crate) struct Database {
    store: Arc<dyn Store>,
    operations: Arc<dyn Operations>,
    inbox: Arc<dyn Inbox>,
    outgoing: Arc<dyn Outgoing>,
    reports: Arc<dyn Reports>,
}

impl Database {
    /// Makes the store for `target`; it connects when it is first used.
    ///
    /// # Errors
    /// When the target cannot be used at all.
    pub(crate) fn open(target: &Target) -> Result<Self, CommandError> {
        match target {
            Target::Postgres { url, schema } => {
                Ok(Self::over(PostgresStore::connect(url.expose_secret(), schema.as_deref())?))
            }
            Target::Sqlite { path } => Ok(Self::over(SqliteStore::open(path)?)),
        }
    }

    fn over<S: Store + Operations + Inbox + Outgoing + Reports + 'static>(store: S) -> Self {
        let store = Arc::new(store);
        Self {
            store: Arc::clone(&store) as Arc<dyn Store>,
            operations: Arc::clone(&store) as Arc<dyn Operations>,
            inbox: Arc::clone(&store) as Arc<dyn Inbox>,
            outgoing: Arc::clone(&store) as Arc<dyn Outgoing>,
            reports: store,
        }
    }

    /// For the relay.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// For an operator.
    pub(crate) fn operations(&self) -> &dyn Operations {
        &*self.operations
    }

    /// For a consumer's operator.
    pub(crate) fn inbox(&self) -> &dyn Inbox {
        &*self.inbox
    }

    /// For whoever hears reports on messages.
    pub(crate) fn reports(&self) -> Arc<dyn Reports> {
        Arc::clone(&self.reports)
    }

    /// For a comparison with an inbox.
    pub(crate) fn outgoing(&self) -> &dyn Outgoing {
        &*self.outgoing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_shows_itself_without_its_password() {
        for (url, shown) in [
            ("postgres://app:hunter2@db:5432/shop", "postgres://app@db:5432/shop"),
            ("postgres://app:hun@hunter2@db/shop", "postgres://app@db/shop"),
            ("postgresql://db/shop?user=app&password=hunter2", "postgresql://db/shop"),
            ("postgres:hunter2", "postgres"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
