//! A transaction that stays open while other things happen.

use tokio::runtime::Runtime;
use tokio_postgres::Client;

use crate::Outcome;
use crate::stage::connect;

/// Ends with this value: rolled back unless it was committed.
pub(crate) struct OpenTransaction {
    client: Client,
    // The connection lives in it. Between calls nothing drives it, and an idle transaction needs nothing.
    runtime: Runtime,
}

impl OpenTransaction {
    /// Begins one by `statements`, the first of which is a BEGIN.
    pub(crate) fn begin(url: &str, statements: &str) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(async {
            let client = connect(url).await?;
            client.batch_execute(statements).await?;
            Outcome::Ok(client)
        })?;
        Ok(Self { client, runtime })
    }

    /// Does something inside it.
    pub(crate) fn run<T>(&self, work: impl AsyncFnOnce(&Client) -> Outcome<T>) -> Outcome<T> {
        self.runtime.block_on(work(&self.client))
    }

    /// Commits.
    pub(crate) fn commit(self) -> Outcome<()> {
        self.run(async |client| Ok(client.batch_execute("COMMIT").await?))
    }
}
