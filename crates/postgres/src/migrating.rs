//! Bringing a database to the version that this program needs, and refusing one that it does not understand.

use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::connection::Connection;
use crate::reading::{Columns, unreadable};
use crate::schema::{
    Contents, LOCK, MIGRATIONS, Migration, Part, VERSION, VERSION_TABLE, prefix, quoted, record, search_path,
};
use crate::store::PostgresStore;

impl PostgresStore {
    /// Applies what is missing, in one transaction. A second migration that runs at once waits and finds nothing left.
    pub(crate) async fn apply_migrations(&self, contents: Contents) -> StoreResult<Vec<u32>> {
        let mut connection = self.operations.take().await?;
        connection.begin("migrate").await?;
        connection.run("migrate", LOCK).await?;
        let applied = self.apply_missing(&mut connection, contents).await?;
        connection.commit("migrate").await?;
        Ok(applied)
    }

    /// Runs a script of [`crate::grants`] in one transaction.
    ///
    /// # Errors
    /// When the tables are missing, or this role owns neither them nor the right to create roles.
    pub async fn apply_grants(&self, script: &str) -> StoreResult<()> {
        let mut connection = self.operations.take().await?;
        connection.begin("grant").await?;
        connection.run("grant", script).await?;
        connection.commit("grant").await
    }

    async fn apply_missing(
        &self,
        connection: &mut Connection<'_>,
        contents: Contents,
    ) -> StoreResult<Vec<u32>> {
        let schema = self.schema.as_deref();
        self.ensure_schema(connection).await?;
        connection.run("migrate", &search_path(schema)).await?;
        connection.run("migrate", VERSION_TABLE).await?;
        let rows = connection.query("migrate", &format!("SELECT {VERSIONS} FROM outbox_schema"), &[]).await?;
        let found = Versions::read(&mut first_columns(&rows)?)?;
        found.refuse_newer()?;
        let mut applied = Vec::new();
        for migration in found.missing(contents) {
            connection.run("migrate", migration.sql).await?;
            connection.run("migrate", &record(migration)).await?;
            applied.push(migration.version);
        }
        Ok(applied)
    }

    /// Creates the schema when it is missing; looking first spares the right to create one.
    async fn ensure_schema(&self, connection: &mut Connection<'_>) -> StoreResult<()> {
        let Some(schema) = self.schema.as_deref() else {
            return Ok(());
        };
        let rows = connection
            .query("migrate", "SELECT FROM pg_namespace WHERE nspname = $1", &[(&schema, Type::TEXT)])
            .await?;
        if rows.is_empty() {
            connection.run("migrate", &format!("CREATE SCHEMA {}", quoted(schema))).await?;
        }
        Ok(())
    }

    pub(crate) async fn check_version(&self) -> StoreResult<()> {
        let at = prefix(self.schema.as_deref());
        let statement =
            format!("SELECT {VERSIONS}, current_setting('transaction_isolation') FROM {at}outbox_schema");
        let rows = self.reads.query("check the tables", &statement, &[]).await?;
        let mut columns = first_columns(&rows)?;
        let found = Versions::read(&mut columns)?;
        found.refuse_newer()?;
        found.refuse_incomplete()?;
        let isolation: String = columns.next()?;
        if isolation != "read committed" {
            return Err(StoreError::new(
                StoreErrorKind::Input,
                format!(
                    "this database role begins its transactions with isolation level {isolation}, the relay needs \
                     read committed: ALTER ROLE … SET default_transaction_isolation = 'read committed'"
                ),
            ));
        }
        Ok(())
    }
}

/// The applied versions as one column.
const VERSIONS: &str = "coalesce(array_agg(version), '{}')";

/// The versions that were applied to a database.
struct Versions(Vec<i32>);

impl Versions {
    fn read(columns: &mut Columns<'_>) -> StoreResult<Self> {
        columns.next().map(Self)
    }

    fn missing(&self, contents: Contents) -> impl Iterator<Item = &'static Migration> {
        contents.migrations().filter(|migration| !self.has(migration))
    }

    fn has(&self, migration: &Migration) -> bool {
        self.0.iter().any(|&found| u32::try_from(found) == Ok(migration.version))
    }

    fn refuse_newer(&self) -> StoreResult<()> {
        let newest = self.0.iter().filter_map(|&found| u32::try_from(found).ok()).max().unwrap_or_default();
        if newest <= VERSION {
            return Ok(());
        }
        Err(StoreError::new(
            StoreErrorKind::SchemaNewer,
            format!(
                "a newer postbox migrated this database to version {newest}, this one knows {VERSION}: use the newer one"
            ),
        ))
    }

    fn refuse_incomplete(&self) -> StoreResult<()> {
        let Some(missing) = self.missing(Contents::Everything).next() else {
            return Ok(());
        };
        let what = if MIGRATIONS.iter().any(|known| known.part == Part::Outbox && self.has(known)) {
            format!(
                "the tables lack version {} ({}), which this program needs",
                missing.version, missing.name
            )
        } else {
            "this database has no outbox, only an inbox".to_owned()
        };
        Err(StoreError::new(StoreErrorKind::SchemaMissing, format!("{what}: run `postbox migrate`")))
    }
}

fn first_columns(rows: &[Row]) -> StoreResult<Columns<'_>> {
    let row = rows.first().ok_or_else(|| unreadable("the version of the tables", None))?;
    Ok(Columns::of(row, "the version of the tables"))
}
