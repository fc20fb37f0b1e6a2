//! The tables, functions and views, as numbered migrations.

use std::fmt::Write as _;

/// One migration; what is applied never changes.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// 1 and up, without gaps.
    pub version: u32,
    /// What it brings, in a word.
    pub name: &'static str,
    /// Which databases need it.
    pub part: Part,
    /// Its statements, for an empty search path but for the outbox's own schema.
    pub sql: &'static str,
}

/// What a migration is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The producer's and the relay's half.
    Outbox,
    /// The consumer's half. Needs nothing of the other one, since it may be in a database of its own.
    Inbox,
}

/// What a database is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Outbox and inbox.
    Everything,
    /// The inbox alone, for a consumer with a database of its own.
    InboxOnly,
}

impl Contents {
    /// The migrations it takes, in order.
    pub(crate) fn migrations(self) -> impl Iterator<Item = &'static Migration> {
        MIGRATIONS.iter().filter(move |migration| self == Self::Everything || migration.part == Part::Inbox)
    }
}

/// All migrations, in order.
pub const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "tables", part: Part::Outbox, sql: include_str!("schema/0001_tables.sql") },
    Migration {
        version: 2,
        name: "producing",
        part: Part::Outbox,
        sql: include_str!("schema/0002_producing.sql"),
    },
    Migration {
        version: 3,
        name: "leasing",
        part: Part::Outbox,
        sql: include_str!("schema/0003_leasing.sql"),
    },
    Migration {
        version: 4,
        name: "reading",
        part: Part::Outbox,
        sql: include_str!("schema/0004_reading.sql"),
    },
    Migration {
        version: 5,
        name: "settling",
        part: Part::Outbox,
        sql: include_str!("schema/0005_settling.sql"),
    },
    Migration {
        version: 6,
        name: "operating",
        part: Part::Outbox,
        sql: include_str!("schema/0006_operating.sql"),
    },
    Migration {
        version: 7,
        name: "consuming",
        part: Part::Inbox,
        sql: include_str!("schema/0007_consuming.sql"),
    },
    Migration {
        version: 8,
        name: "destinations",
        part: Part::Outbox,
        sql: include_str!("schema/0008_destinations.sql"),
    },
    Migration {
        version: 9,
        name: "reports",
        part: Part::Outbox,
        sql: include_str!("schema/0009_reports.sql"),
    },
];

/// The version that this program needs.
pub const VERSION: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Keeps two migrations of one database from running at once; any constant will do.
pub(crate) const LOCK: &str = "SELECT pg_advisory_xact_lock(7091187446391028557)";

/// Remembers which migrations were applied.
pub(crate) const VERSION_TABLE: &str = "CREATE TABLE IF NOT EXISTS outbox_schema (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)";

/// All migrations as one script that creates everything in an empty database, for people who run their own migration
/// tool: tables in `schema`, or in the first schema of the connection's search path.
#[must_use]
pub fn migration_sql(schema: Option<&str>) -> String {
    script(schema, Contents::Everything)
}

/// The same for a consumer's own database: the inbox and nothing else.
#[must_use]
pub fn inbox_migration_sql(schema: Option<&str>) -> String {
    script(schema, Contents::InboxOnly)
}

fn script(schema: Option<&str>, contents: Contents) -> String {
    let mut script = String::from("BEGIN;\n");
    if let Some(schema) = schema {
        let _ = writeln!(script, "CREATE SCHEMA IF NOT EXISTS {};", quoted(schema));
    }
    let _ = writeln!(script, "{};\n{LOCK};\n{VERSION_TABLE};", search_path(schema));
    for migration in contents.migrations() {
        let Migration { version, name, sql, .. } = migration;
        let _ = writeln!(script, "\n-- {version:04} {name}\n{sql}");
        let _ = writeln!(script, "{};", record(migration));
    }
    script.push_str("COMMIT;\n");
    script
}

/// The statement that fixes, until the transaction ends, where names are created and what functions capture with
/// `SET search_path FROM CURRENT`. The temporary schema comes last, so that nobody can slip a table in front.
pub(crate) fn search_path(schema: Option<&str>) -> String {
    match schema {
        Some(schema) => format!("SET LOCAL search_path = {}, pg_temp", quoted(schema)),
        None => {
            "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)".to_owned()
        }
    }
}

/// The statement that remembers `migration`.
pub(crate) fn record(migration: &Migration) -> String {
    format!("INSERT INTO outbox_schema (version, name) VALUES ({}, '{}')", migration.version, migration.name)
}

/// `name` as an SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What to put before a name so that it is found in `schema`; nothing for the connection's own search path.
#[cfg(any(feature = "store", feature = "tokio-postgres", feature = "sqlx"))]
pub(crate) fn prefix(schema: Option<&str>) -> String {
    schema.map(|schema| quoted(schema) + ".").unwrap_or_default()
}
