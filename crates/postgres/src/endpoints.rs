//! Destinations kept as data: what the relay reads of them, and what an operator does with them.
//!
//! Statements are files in `endpoints/`, in which `@.` stands for the schema, and functions of the database
//! (`schema/0008_destinations.sql`).

use std::time::Duration;

use jiff::Timestamp;
use postbox_core::endpoint::{
    Endpoint, EndpointRecord, EndpointSecret, EndpointSet, MAX_SECRETS, SecretRecord, Settings,
};
use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::connection::Param;
use crate::reading::{Columns, sql_count, unreadable};
use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) async fn read_endpoints(&self, known: i64) -> StoreResult<Option<EndpointSet>> {
        let rows = self
            .leases
            .query("read the destinations", &self.statements.endpoints, &[(&known, Type::INT8)])
            .await?;
        let mut set: Option<EndpointSet> = None;
        for row in &rows {
            let mut columns = Columns::of(row, "a destination");
            let version = columns.next()?;
            let set = set.get_or_insert_with(|| EndpointSet { version, endpoints: Vec::new() });
            // One row without a name stands for an empty table.
            if let Some(name) = columns.next::<Option<&str>>()? {
                set.endpoints.push(read_endpoint(name, &mut columns)?);
            }
        }
        Ok(set)
    }

    pub(crate) async fn disable(&self, name: &str, reason: &str) -> StoreResult<()> {
        self.leases
            .query(
                "disable a destination",
                &self.statements.disable_destination,
                &[(&name, Type::TEXT), (&reason, Type::TEXT)],
            )
            .await
            .map(drop)
    }

    pub(crate) async fn list_records(&self, name: Option<&str>) -> StoreResult<Vec<EndpointRecord>> {
        let rows = self
            .operate("list destinations", include_str!("endpoints/list.sql"), &[(&name, Type::TEXT)])
            .await?;
        rows.iter().map(|row| read_record(&mut Columns::of(row, "a destination"))).collect()
    }

    pub(crate) async fn change_settings(&self, name: &str, seen: &str, settings: &str) -> StoreResult<bool> {
        let params: [Param<'_>; 3] = [(&name, Type::TEXT), (&seen, Type::TEXT), (&settings, Type::TEXT)];
        let rows =
            self.operate("change a destination", include_str!("endpoints/change.sql"), &params).await?;
        Ok(!rows.is_empty())
    }

    pub(crate) async fn insert_endpoint(
        &self,
        name: &str,
        settings: &str,
        secret: Option<&str>,
    ) -> StoreResult<bool> {
        let params: [Param<'_>; 3] = [(&name, Type::TEXT), (&settings, Type::TEXT), (&secret, Type::TEXT)];
        let statement = "SELECT @.outbox_add_destination($1, $2::json, $3)";
        first(&self.operate("add a destination", statement, &params).await?)
    }

    pub(crate) async fn switch(&self, name: &str, reason: Option<&str>) -> StoreResult<bool> {
        let rows = match reason {
            Some(reason) => {
                let statement = "SELECT @.outbox_disable_destination($1, $2)";
                let params: [Param<'_>; 2] = [(&name, Type::TEXT), (&reason, Type::TEXT)];
                self.operate("disable a destination", statement, &params).await?
            }
            None => {
                let statement = "SELECT @.outbox_enable_destination($1)";
                self.operate("enable a destination", statement, &[(&name, Type::TEXT)]).await?
            }
        };
        first(&rows)
    }

    pub(crate) async fn insert_secret(&self, name: &str, secret: &str, keep: Duration) -> StoreResult<bool> {
        let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::from(i32::MAX));
        let at_most = i32::try_from(MAX_SECRETS).unwrap_or(i32::MAX);
        let params: [Param<'_>; 4] =
            [(&name, Type::TEXT), (&secret, Type::TEXT), (&keep_ms, Type::INT8), (&at_most, Type::INT4)];
        let statement = "SELECT @.outbox_add_destination_secret($1, $2, $3, $4)";
        let in_use: Option<i32> = first(&self.operate("add a secret", statement, &params).await?)?;
        match in_use {
            Some(in_use) if in_use > at_most => Err(too_many_secrets(name)),
            in_use => Ok(in_use.is_some()),
        }
    }

    pub(crate) async fn delete_endpoint(&self, name: &str) -> StoreResult<Option<i64>> {
        let statement = "SELECT @.outbox_remove_destination($1)";
        first(&self.operate("remove a destination", statement, &[(&name, Type::TEXT)]).await?)
    }

    pub(crate) async fn discard_of_removed(
        &self,
        destination: &str,
        reason: &str,
        limit: u32,
    ) -> StoreResult<u64> {
        let limit = sql_count(limit);
        let params: [Param<'_>; 3] =
            [(&destination, Type::TEXT), (&reason, Type::TEXT), (&limit, Type::INT4)];
        let statement = "SELECT @.outbox_discard_removed($1, $2, $3)";
        let changed: i64 = first(&self.operate("discard deliveries", statement, &params).await?)?;
        Ok(u64::try_from(changed).unwrap_or(0))
    }
}

fn read_endpoint(name: &str, columns: &mut Columns<'_>) -> StoreResult<Endpoint> {
    let settings = Settings::read(columns.next()?);
    let disabled: bool = columns.next()?;
    let reason: Option<String> = columns.next()?;
    let texts: Vec<String> = columns.next()?;
    let expiries: Vec<Option<Timestamp>> = columns.next()?;
    let secrets = texts.into_iter().zip(expiries).take(MAX_SECRETS);
    Ok(Endpoint {
        name: name.into(),
        settings,
        secrets: secrets.map(|(text, expires_at)| EndpointSecret { text, expires_at }).collect(),
        secrets_expired: columns.next()?,
        disabled: disabled.then(|| reason.unwrap_or_else(|| "no reason was given".into())),
    })
}

fn read_record(columns: &mut Columns<'_>) -> StoreResult<EndpointRecord> {
    let record = EndpointRecord {
        name: columns.next()?,
        settings: columns.next()?,
        disabled_at: columns.next()?,
        disabled_reason: columns.next()?,
        created_at: columns.next()?,
        updated_at: columns.next()?,
        secrets: Vec::new(),
    };
    let added: Vec<Timestamp> = columns.next()?;
    let expiries: Vec<Option<Timestamp>> = columns.next()?;
    let secrets = added.into_iter().zip(expiries);
    let secrets = secrets.map(|(created_at, expires_at)| SecretRecord { created_at, expires_at }).collect();
    Ok(EndpointRecord { secrets, ..record })
}

/// The one value of the one row that a function answers.
fn first<T: for<'a> tokio_postgres::types::FromSql<'a>>(rows: &[Row]) -> StoreResult<T> {
    let row = rows.first().ok_or_else(|| unreadable("an answer", None))?;
    Columns::of(row, "an answer").next()
}

fn too_many_secrets(name: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Input,
        format!(
            "{name:?} has {MAX_SECRETS} secrets in use already: wait until one expires, or replace all of them at once"
        ),
    )
}
