//! The database roles and the least that each of them needs.

use std::fmt::Write as _;

use crate::schema::{prefix, quoted};

/// What a database role is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Duty {
    /// A service that writes events.
    Producer,
    /// The relay, and an operator's commands.
    Relay,
    /// Dashboards and people who only look, without payloads.
    Reader,
    /// A service that accepts events.
    Consumer,
    /// `postbox whatsapp-webhook`, which hears what became of messages.
    Reporter,
}

impl Duty {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Producer, Self::Relay, Self::Reader, Self::Consumer, Self::Reporter];

    /// Its name in a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Relay => "relay",
            Self::Reader => "reader",
            Self::Consumer => "consumer",
            Self::Reporter => "reporter",
        }
    }

    fn grants(self) -> &'static str {
        match self {
            Self::Producer => include_str!("grants/producer.sql"),
            Self::Relay => include_str!("grants/relay.sql"),
            Self::Reader => include_str!("grants/reader.sql"),
            Self::Consumer => include_str!("grants/consumer.sql"),
            Self::Reporter => include_str!("grants/reporter.sql"),
        }
    }
}

/// A script that gives `role` what `duty` needs, and creates it (as a role that cannot log in, to be granted to those
/// that do) when there is none of that name. Running it again changes nothing.
///
/// The tables are in `schema`, or where the connection that runs the script looks for them.
#[must_use]
pub fn grants_sql(schema: Option<&str>, duty: Duty, role: &str) -> String {
    let (name, literal) = (quoted(role), literal(role));
    let mut script = String::new();
    let _ = writeln!(
        script,
        "DO $do$ BEGIN\n    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {literal}) THEN\n        \
         EXECUTE format('CREATE ROLE %I NOLOGIN', {literal});\n    END IF;\nEND $do$;"
    );
    match schema {
        Some(schema) => {
            let _ = writeln!(script, "GRANT USAGE ON SCHEMA {} TO {name};", quoted(schema));
        }
        None => {
            let _ = writeln!(
                script,
                "DO $do$ BEGIN\n    \
                 EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), {literal});\nEND $do$;"
            );
        }
    }
    script.push_str(&duty.grants().replace("@.", &prefix(schema)).replace("@role", &name));
    script
}

/// `text` as an SQL literal, inside and outside of a dollar-quoted block.
fn literal(text: &str) -> String {
    format!("U&'{}'", text.chars().map(escaped).collect::<String>())
}

fn escaped(character: char) -> String {
    if character.is_ascii_alphanumeric() || character == '_' {
        character.into()
    } else {
        format!("\\+{:06x}", u32::from(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_names_whatever_is_in_them() {
        let sql = grants_sql(Some("my \"shop\""), Duty::Producer, "o'$do$\\ \"x\"");
        assert!(sql.contains("ON \"my \"\"shop\"\"\".outbox TO \"o'$do$\\ \"\"x\"\"\";"), "{sql}");
        assert!(
            sql.contains("U&'o\\+000027\\+000024do\\+000024\\+00005c\\+000020\\+000022x\\+000022'"),
            "{sql}"
        );
    }
}
