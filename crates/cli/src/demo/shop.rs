//! A small shop: it changes an order and writes the event in one transaction.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use postbox_core::event::NewEvent;
use postbox_sqlite::{EnqueueError, enqueue};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::stage::connect;
use crate::dice::Dice;

/// What happens to an order, in this order; the events' types.
pub(super) const STEPS: [&str; 3] = ["order.confirmed", "order.packed", "order.shipped"];

/// Orders whose transaction is rolled back after the event was written, in percent: the payment did not go through.
const ROLLED_BACK_PERCENT: u64 = 10;

/// The shop trades at least this long, so that there is something to watch and to interrupt.
const OPENING_TIME: Duration = Duration::from_secs(4);

/// What the shop has done so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sales {
    pub(super) committed: u64,
    pub(super) rolled_back: u64,
    pub(super) events: u64,
    pub(super) closed: bool,
}

/// Why the shop had to close early.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShopError {
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error(transparent)]
    Event(#[from] EnqueueError),
    #[error("an event cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// What the shop has to do.
#[derive(Debug)]
pub(super) struct Shop {
    pub(super) database: PathBuf,
    pub(super) orders: u64,
    pub(super) seed: u64,
    /// Told after every transaction.
    pub(super) sales: watch::Sender<Sales>,
    /// Closes the shop early.
    pub(super) cancelled: CancellationToken,
}

/// An order that is on its way.
struct Open {
    number: u64,
    steps: usize,
}

impl Shop {
    /// Takes all orders and brings each through its steps, many at the same time. Blocks.
    ///
    /// # Errors
    /// When a transaction fails.
    pub(super) fn trade(self) -> Result<(), ShopError> {
        let mut connection = connect(&self.database)?;
        let mut dice = Dice::of(self.seed, &[1]);
        let mut open: Vec<Open> = Vec::new();
        let mut taken = 0;
        let mut transactions = 0;
        let began = Instant::now();
        while (taken < self.orders || !open.is_empty()) && !self.cancelled.is_cancelled() {
            let index = usize::try_from(dice.below(open.len() as u64)).unwrap_or(0);
            if taken < self.orders && (open.is_empty() || dice.happens(40)) {
                taken += 1;
                if self.take_order(&mut connection, taken, &mut dice)? {
                    open.push(Open { number: taken, steps: 1 });
                }
            } else {
                let order = &mut open[index];
                self.advance(&mut connection, order)?;
                if order.steps == STEPS.len() {
                    open.swap_remove(index);
                }
            }
            transactions += 1;
            self.pace(began, transactions);
        }
        self.sales.send_modify(|sales| sales.closed = true);
        Ok(())
    }

    /// Whether the order was committed.
    fn take_order(
        &self,
        connection: &mut Connection,
        number: u64,
        dice: &mut Dice,
    ) -> Result<bool, ShopError> {
        let total_cents = 500 + dice.below(20_000);
        let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached("INSERT INTO orders (number, total_cents, steps) VALUES (?1, ?2, 1)")?
            .execute(params![number.cast_signed(), total_cents.cast_signed()])?;
        write_event(&mut transaction, number, 0)?;
        if dice.happens(ROLLED_BACK_PERCENT) {
            transaction.rollback()?;
            self.sales.send_modify(|sales| sales.rolled_back += 1);
            return Ok(false);
        }
        transaction.commit()?;
        self.sales.send_modify(|sales| {
            sales.committed += 1;
            sales.events += 1;
        });
        Ok(true)
    }

    fn advance(&self, connection: &mut Connection, order: &mut Open) -> Result<(), ShopError> {
        let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached("UPDATE orders SET steps = steps + 1 WHERE number = ?1")?
            .execute([order.number.cast_signed()])?;
        write_event(&mut transaction, order.number, order.steps)?;
        transaction.commit()?;
        order.steps += 1;
        self.sales.send_modify(|sales| sales.events += 1);
        Ok(())
    }

    /// Sleeps when the shop is ahead of its opening time.
    fn pace(&self, began: Instant, transactions: u64) {
        let all = self.orders * STEPS.len() as u64;
        let share = transactions as f64 / all as f64;
        let ahead = OPENING_TIME.mul_f64(share.min(1.0)).saturating_sub(began.elapsed());
        if !ahead.is_zero() {
            std::thread::sleep(ahead);
        }
    }
}

fn write_event(transaction: &mut Transaction<'_>, number: u64, step: usize) -> Result<(), ShopError> {
    #[derive(serde::Serialize)]
    struct Payload {
        order: u64,
    }
    let event = NewEvent::new("order", number.to_string(), STEPS[step], &Payload { order: number })?;
    enqueue(transaction, &event)?;
    Ok(())
}
