//! Producers: changes of business data with the events that tell of them, some taken back whole or in part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postbox_testkit::faults::Dice;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Error, NoTls, Transaction};
use uuid::Uuid;

/// Producers at work side by side.
const PRODUCERS: u64 = 4;

/// Aggregates they share.
const AGGREGATES: usize = 300;

/// Pause before a database that went away is tried again.
const RECONNECT: Duration = Duration::from_millis(100);

/// What producers did, as far as they know.
#[derive(Debug, Default)]
pub(crate) struct Takings {
    /// Events in transactions and savepoints that were rolled back on purpose.
    pub(crate) rolled_back: AtomicUsize,
    /// Transactions that ended with an error: nobody knows whether they were committed until the database is asked.
    pub(crate) in_doubt: AtomicUsize,
}

/// Producers that work until they are told to close.
#[derive(Debug)]
pub(crate) struct Shop {
    producers: JoinSet<()>,
    open: watch::Sender<bool>,
    takings: Arc<Takings>,
}

impl Shop {
    /// Starts them on the database at `url`; each waits `pause` after a transaction, more or less.
    pub(crate) fn open(url: &str, seed: u64, pause: Duration) -> Self {
        let open = watch::Sender::new(true);
        let takings = Arc::new(Takings::default());
        let mut producers = JoinSet::new();
        for number in 0..PRODUCERS {
            let producer = Producer {
                url: url.to_owned(),
                dice: Dice::new(seed.wrapping_add(number)),
                pause,
                open: open.subscribe(),
                takings: Arc::clone(&takings),
            };
            producers.spawn(producer.work());
        }
        Self { producers, open, takings }
    }

    /// Lets them end the transaction they are in, and waits for that.
    pub(crate) async fn close(self) -> Arc<Takings> {
        self.open.send_replace(false);
        self.producers.join_all().await;
        self.takings
    }
}

struct Producer {
    url: String,
    dice: Dice,
    pause: Duration,
    open: watch::Receiver<bool>,
    takings: Arc<Takings>,
}

impl Producer {
    async fn work(mut self) {
        while *self.open.borrow() {
            if let Ok((mut client, connection)) = tokio_postgres::connect(&self.url, NoTls).await {
                let connection = tokio::spawn(connection);
                while *self.open.borrow() && self.sell(&mut client).await.is_ok() {
                    let spread = 0.5 + self.dice.below(100) as f64 / 100.0;
                    tokio::time::sleep(self.pause.mul_f64(spread)).await;
                }
                drop(client);
                let _ = connection.await;
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }

    /// One transaction.
    async fn sell(&mut self, client: &mut Client) -> Result<(), Error> {
        let done = self.transact(client).await;
        if done.is_err() {
            self.takings.in_doubt.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    async fn transact(&mut self, client: &mut Client) -> Result<(), Error> {
        // One in ten changes is of one of three busy aggregates.
        let among = if self.dice.happens(10) { 3 } else { AGGREGATES };
        let aggregate = self.dice.below(among);
        let mut transaction = client.transaction().await?;
        let mut changes = 0;
        for _ in 0..=self.dice.below(3) {
            change(&transaction, aggregate).await?;
            changes += 1;
        }
        if self.dice.happens(15) {
            let savepoint = transaction.savepoint("second_thoughts").await?;
            change(&savepoint, aggregate).await?;
            if self.dice.happens(50) {
                savepoint.rollback().await?;
                self.takings.rolled_back.fetch_add(1, Ordering::Relaxed);
            } else {
                savepoint.commit().await?;
                changes += 1;
            }
        }
        if self.dice.happens(10) {
            transaction.rollback().await?;
            self.takings.rolled_back.fetch_add(changes, Ordering::Relaxed);
            return Ok(());
        }
        transaction.commit().await
    }
}

async fn change(transaction: &Transaction<'_>, aggregate: usize) -> Result<(), Error> {
    let event_id = Uuid::now_v7();
    transaction
        .batch_execute(&format!(
            "INSERT INTO change (event_id, aggregate) VALUES ('{event_id}', {aggregate});
             INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
             VALUES ('{event_id}', 'account', '{aggregate}', 'account.changed', '{{}}')"
        ))
        .await
}
