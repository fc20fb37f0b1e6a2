//! Bringing a database to the version that this program needs, and refusing one that it does not understand.

use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};
use tokio_postgres::types::Type;

use crate::connection::Connection;
use crate::reading::Columns;
use crate::schema::{LOCK, MIGRATIONS, VERSION, VERSION_TABLE, prefix, quoted, record, search_path};
use crate::store::PostgresStore;

impl PostgresStore {
    /// Applies what is missing, in one transaction. A second migration that runs at once waits and finds nothing left.
    pub(crate) async fn apply_migrations(&self) -> StoreResult<Vec<u32>> {
        let mut connection = self.operations.take().await?;
        connection.begin("migrate").await?;
        connection.run("migrate", LOCK).await?;
        let applied = self.apply_missing(&mut connection).await?;
        connection.commit("migrate").await?;
        Ok(applied)
    }

    async fn apply_missing(&self, connection: &mut Connection<'_>) -> StoreResult<Vec<u32>> {
        let schema = self.schema.as_deref();
        self.ensure_schema(connection).await?;
        connection.run("migrate", &search_path(schema)).await?;
        connection.run("migrate", VERSION_TABLE).await?;
        let rows =
            connection.query("migrate", "SELECT coalesce(max(version), 0) FROM outbox_schema", &[]).await?;
        let found = read_version(&rows)?;
        refuse_newer(found)?;
        let mut applied = Vec::new();
        for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
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
        let statement = format!(
            "SELECT coalesce(max(version), 0), current_setting('transaction_isolation') FROM {at}outbox_schema"
        );
        let rows = self.reads.query("check the tables", &statement, &[]).await?;
        let found = read_version(&rows)?;
        refuse_newer(found)?;
        if found < VERSION {
            return Err(StoreError::new(
                StoreErrorKind::SchemaMissing,
                format!(
                    "the tables have version {found}, this program needs {VERSION}: run `postbox migrate`"
                ),
            ));
        }
        let isolation: String = rows.first().map_or(Ok(String::new()), |row| {
            let mut columns = Columns::of(row, "the isolation level");
            columns.next::<i32>().and_then(|_| columns.next())
        })?;
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

fn read_version(rows: &[tokio_postgres::Row]) -> StoreResult<u32> {
    let found: i32 =
        rows.first().map_or(Ok(0), |row| Columns::of(row, "the version of the tables").next())?;
    Ok(u32::try_from(found).unwrap_or_default())
}

fn refuse_newer(found: u32) -> StoreResult<()> {
    if found <= VERSION {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::SchemaNewer,
        format!(
            "a newer postbox migrated this database to version {found}, this one knows {VERSION}: use the newer one"
        ),
    ))
}
