//! A shop with an outbox in a database of its own.

#![allow(dead_code, reason = "each test binary uses its part")]

use postbox_core::operations::Operations;
use postbox_postgres::PostgresStore;
use postbox_testkit::postgres::{Database, PgCluster};
use tokio_postgres::{Client, Error, NoTls};

pub(crate) struct Shop {
    pub(crate) database: Database<'static>,
    pub(crate) store: PostgresStore,
}

impl Shop {
    /// A migrated database with a table of orders.
    pub(crate) async fn open() -> Self {
        let database = PgCluster::shared().database();
        database.sql("CREATE TABLE orders (id text PRIMARY KEY)");
        let store = PostgresStore::connect(&database.url(), None).unwrap();
        store.migrate().await.unwrap();
        Self { database, store }
    }

    /// A connection of the shop's own code.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.database.url()).await
    }

    /// Sequences of an aggregate of type `order`, in order of id.
    pub(crate) fn sequences(&self, aggregate_id: &str) -> Vec<i64> {
        self.numbers(&format!(
            "SELECT aggregate_seq FROM outbox WHERE aggregate_id = '{aggregate_id}' ORDER BY id"
        ))
    }

    /// The first column of `query`, as numbers.
    pub(crate) fn numbers(&self, query: &str) -> Vec<i64> {
        self.database.sql(query).lines().map(|line| line.parse().unwrap()).collect()
    }

    /// The single number that `query` gives.
    pub(crate) fn number(&self, query: &str) -> i64 {
        self.numbers(query)[0]
    }

    /// Every event is on the to-do list exactly once, and nothing else is.
    pub(crate) fn assert_todo_is_complete(&self) {
        assert_eq!(
            self.database.sql(
                "SELECT id, lane_id, shard FROM outbox EXCEPT ALL SELECT id, lane_id, shard FROM outbox_pending"
            ),
            "",
            "an event is missing on the to-do list"
        );
        assert_eq!(
            self.database.sql(
                "SELECT id, lane_id, shard FROM outbox_pending EXCEPT ALL SELECT id, lane_id, shard FROM outbox"
            ),
            "",
            "the to-do list names what is no event"
        );
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// SQLSTATE, name of the violated rule, and message.
pub(crate) fn refusal(error: &Error) -> (String, String, String) {
    let answer = error.as_db_error().unwrap_or_else(|| panic!("the database did not refuse: {error:?}"));
    (
        answer.code().code().to_owned(),
        answer.constraint().unwrap_or_default().to_owned(),
        answer.message().to_owned(),
    )
}
