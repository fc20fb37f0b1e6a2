//! A producer: a change of its own data and the events for it, in one transaction.

use std::time::Duration;

use postbox_testkit::faults::Dice;
use tokio_postgres::{NoTls, Transaction};
use uuid::Uuid;

/// Pause after a transaction: producers shall still be at work while the relay is killed.
const PAUSE: Duration = Duration::from_millis(10);

/// Transactions that are rolled back after they wrote their events, in percent.
const ROLLED_BACK_PERCENT: u8 = 10;

/// What to produce.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Producing {
    pub(crate) database_url: String,
    pub(crate) seed: u64,
    /// Events to commit.
    pub(crate) events: usize,
    /// Aggregates to choose from, shared with the other producers.
    pub(crate) aggregates: usize,
}

/// The business data: one row per change, with the event that tells of it.
pub(crate) const TABLE: &str = "CREATE TABLE change (event_id uuid PRIMARY KEY, aggregate int NOT NULL)";

/// Commits the events.
pub(crate) async fn produce(producing: &Producing) {
    let (mut client, connection) = tokio_postgres::connect(&producing.database_url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut dice = Dice::new(producing.seed);
    let mut left = producing.events;
    while left > 0 {
        let aggregate = dice.below(producing.aggregates);
        let events = (1 + dice.below(3)).min(left);
        let transaction = client.transaction().await.unwrap();
        for _ in 0..events {
            change(&transaction, aggregate).await;
        }
        if dice.happens(ROLLED_BACK_PERCENT) {
            transaction.rollback().await.unwrap();
        } else {
            transaction.commit().await.unwrap();
            left -= events;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn change(transaction: &Transaction<'_>, aggregate: usize) {
    let event_id = Uuid::now_v7().to_string();
    transaction
        .batch_execute(&format!(
            "INSERT INTO change (event_id, aggregate) VALUES ('{event_id}', {aggregate});
             INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
             VALUES ('{event_id}', 'account', '{aggregate}', 'account.changed', '{{}}')"
        ))
        .await
        .unwrap();
}
