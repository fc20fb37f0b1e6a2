//! Switching the announcement of new events on and off.

use postbox_core::store::StoreResult;

use crate::schema::prefix;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Makes every transaction that writes events announce it, for [`super::NotifyWakeUp`], or ends that.
    ///
    /// It costs producers throughput when many of them commit at once; see `docs/operations.md`. Needs the rights of the
    /// tables' owner. Repeating it changes nothing.
    ///
    /// # Errors
    /// When the database cannot be reached, the tables are missing, or the role does not own them.
    pub async fn announce_events(&self, on: bool) -> StoreResult<()> {
        let statements = if on { include_str!("announce.sql") } else { include_str!("silence.sql") };
        let statements = statements.replace("@.", &prefix(self.schema.as_deref()));
        let mut connection = self.operations.take().await?;
        connection.begin("switch announcements").await?;
        connection.run("switch announcements", &statements).await?;
        connection.commit("switch announcements").await
    }
}
