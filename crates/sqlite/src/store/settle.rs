//! Recording outcomes.
//!
//! # What makes a repeated settle harmless
//! - An event's first records are written only if the same transaction takes the event off the to-do list. When it is
//!   gone already, so are its records, and whatever happened to them since stays.
//! - A later record that tells of an attempt is written only if it knows of more attempts than the row does.
//! - A row in a final state takes nothing but the news that the event was delivered after all.

use std::collections::{HashMap, HashSet};

use postbox_core::delivery::{DeliveryRecord, DeliveryState};
use postbox_core::event::{OutboxId, Shard};
use postbox_core::lease::{RelayId, Term};
use postbox_core::store::{SettleBatch, SettleReport, StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, named_params};

use super::clock::{self, Millis};
use super::event::{optional_text, text};
use super::failure::Attempt;
use super::heads::TouchedLanes;
use super::history;

/// Records `batch` in one transaction, without what belongs to terms that are not current.
pub(crate) fn settle(
    connection: &mut Connection,
    batch: &SettleBatch,
    relay: RelayId,
) -> Attempt<SettleReport> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let fence = Fence::check(&transaction, &batch.terms, relay)?;
    let taken_off = take_off(&transaction, batch, &fence)?;
    let dispatched: HashSet<OutboxId> = batch.dispatched.iter().map(|&(_, id)| id).collect();

    let mut writer = RecordWriter {
        transaction: &transaction,
        now: clock::now(&transaction)?,
        touched: TouchedLanes::default(),
    };
    for record in &batch.records {
        let applied_before = dispatched.contains(&record.id) && !taken_off.contains(&record.id);
        if fence.holds(record.shard)? && !applied_before {
            writer.write(record)?;
        }
    }
    writer.touched.restore_heads(&transaction, writer.now)?;
    transaction.commit()?;
    Ok(SettleReport { refused: fence.refused })
}

/// Which of a batch's terms are current.
struct Fence {
    current: HashMap<Shard, bool>,
    refused: Vec<Term>,
}

impl Fence {
    fn check(transaction: &Connection, terms: &[Term], relay: RelayId) -> rusqlite::Result<Self> {
        let relay = relay.to_string();
        let mut statement = transaction.prepare_cached(
            "SELECT 1 FROM outbox_shard WHERE shard = :shard AND epoch = :epoch AND owner = :relay",
        )?;
        let mut fence = Self { current: HashMap::new(), refused: Vec::new() };
        for term in terms {
            let holds = statement
                .exists(named_params! { ":shard": term.shard, ":epoch": term.epoch, ":relay": relay })?;
            if !holds {
                fence.refused.push(*term);
            }
            fence.current.insert(term.shard, holds);
        }
        Ok(fence)
    }

    fn holds(&self, shard: Shard) -> Result<bool, StoreError> {
        self.current.get(&shard).copied().ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Internal,
                format!(
                    "a settle has records of shard {shard} without naming its term; nothing was recorded"
                ),
            )
        })
    }
}

/// Takes the dispatched events off the to-do list and returns those that were on it.
fn take_off(transaction: &Connection, batch: &SettleBatch, fence: &Fence) -> Attempt<HashSet<OutboxId>> {
    let mut statement =
        transaction.prepare_cached("DELETE FROM outbox_pending WHERE shard = ?1 AND id = ?2")?;
    let mut taken_off = HashSet::with_capacity(batch.dispatched.len());
    for &(shard, id) in &batch.dispatched {
        if fence.holds(shard)? && statement.execute((shard, id))? > 0 {
            taken_off.insert(id);
        }
    }
    Ok(taken_off)
}

/// What is stored of a delivery.
struct Stored {
    state: DeliveryState,
    attempts: u32,
    begun: Option<u32>,
    history: Option<String>,
}

impl Stored {
    /// Whether `record` says more than the row does.
    fn yields_to(&self, record: &DeliveryRecord) -> bool {
        if !self.state.is_unfinished() {
            return record.state == DeliveryState::Delivered && self.state != DeliveryState::Delivered;
        }
        if !record.state.is_unfinished() {
            return true;
        }
        // A record from before an attempt that was begun knows less, unless it says that this attempt was not made.
        if let Some(begun) = self.begun
            && record.attempts < begun
            && !(record.withdrawn && record.attempts + 1 == begun)
        {
            return false;
        }
        // With as many attempts as stored it is either the same again, or a decision without another attempt.
        record.attempts > self.attempts
            || (record.attempts == self.attempts && (record.failure.is_none() || record.state != self.state))
    }
}

struct RecordWriter<'a> {
    transaction: &'a Connection,
    now: Millis,
    touched: TouchedLanes,
}

impl RecordWriter<'_> {
    fn write(&mut self, record: &DeliveryRecord) -> Attempt<()> {
        if self.insert(record)? {
            if record.state.is_unfinished() {
                self.touched.insert(record.lane_id, &record.destination);
            }
            return Ok(());
        }
        // No row either: the event was pruned since.
        let Some(stored) = self.stored(record)? else { return Ok(()) };
        if stored.yields_to(record) {
            self.update(record, &stored)?;
            if stored.state.is_unfinished() {
                self.touched.insert(record.lane_id, &record.destination);
            }
        }
        Ok(())
    }

    /// Inserts the record's row; `false` when there is one already.
    fn insert(&self, record: &DeliveryRecord) -> rusqlite::Result<bool> {
        let history = record
            .failure
            .as_ref()
            .map(|failure| history::extend(None, record.attempts, record.status, failure, self.now));
        let inserted = self.transaction.prepare_cached(include_str!("sql/record_insert.sql"))?.execute(
            named_params! {
                ":id": record.id,
                ":destination": &*record.destination,
                ":lane_id": record.lane_id,
                ":shard": record.shard,
                ":state": record.state.as_str(),
                ":attempts": record.attempts,
                ":next_attempt_at": self.next_attempt_at(record),
                ":sent_at": self.sent_at(record),
                ":status": record.status,
                ":external_id": record.external_id,
                ":last_error": record.failure.as_ref().map(|failure| &failure.reason),
                ":last_class": record.failure.as_ref().map(|failure| failure.class),
                ":history": history,
                ":uncounted": record.uncounted,
            },
        )?;
        Ok(inserted > 0)
    }

    fn update(&self, record: &DeliveryRecord, stored: &Stored) -> rusqlite::Result<()> {
        let is_news = record.attempts > stored.attempts;
        let failure = record.failure.as_ref();
        let history = failure.filter(|_| is_news).map(|failure| {
            let before = stored.history.as_deref();
            history::extend(before, record.attempts, record.status, failure, self.now)
        });
        // A parked record may call itself waiting without knowing whether it is the head; a head stays one.
        let stays_head = record.state == DeliveryState::Waiting;
        let state = if stays_head { stored.state } else { record.state };
        self.transaction.prepare_cached(include_str!("sql/record_update.sql"))?.execute(named_params! {
            ":id": record.id,
            ":destination": &*record.destination,
            ":state": state.as_str(),
            ":attempts": record.attempts.max(stored.attempts),
            ":keep_next_attempt": stays_head,
            ":next_attempt_at": self.next_attempt_at(record),
            ":sent_at": self.sent_at(record),
            ":status": record.status,
            ":external_id": record.external_id,
            ":last_error": failure.map(|failure| &failure.reason),
            ":last_class": failure.map(|failure| failure.class),
            ":history": history,
            ":uncounted": record.uncounted,
            ":forget_failure": record.withdrawn && !is_news,
        })?;
        Ok(())
    }

    fn stored(&self, record: &DeliveryRecord) -> rusqlite::Result<Option<Stored>> {
        self.transaction
            .prepare_cached(
                "SELECT state, attempts, history, begun FROM outbox_delivery WHERE outbox_id = ?1 AND destination = ?2",
            )?
            .query_row((record.id, &*record.destination), |row| {
                Ok(Stored {
                    // Whatever is not known is final: nothing of it is changed.
                    state: DeliveryState::parse(&text(row, 0)?).unwrap_or(DeliveryState::Discarded),
                    attempts: row.get(1)?,
                    history: optional_text(row, 2)?,
                    begun: row.get(3)?,
                })
            })
            .optional()
    }

    fn next_attempt_at(&self, record: &DeliveryRecord) -> Option<Millis> {
        (record.state == DeliveryState::Retry)
            .then(|| clock::after(self.now, record.retry_in.unwrap_or_default()))
    }

    fn sent_at(&self, record: &DeliveryRecord) -> Option<Millis> {
        (record.state == DeliveryState::Delivered).then_some(self.now)
    }
}
