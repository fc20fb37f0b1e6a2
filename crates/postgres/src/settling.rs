//! Recording outcomes: a batch becomes the arrays of one call of `outbox_settle`, one round trip and one transaction.

use std::collections::HashSet;

use postbox_core::delivery::DeliveryRecord;
use postbox_core::event::OutboxId;
use postbox_core::lease::{RelayId, Term};
use postbox_core::store::{Beginning, SettleBatch, SettleReport, StoreResult};
use tokio_postgres::types::Type;

use crate::reading::{Columns, sql_count, sql_shard};
use crate::store::PostgresStore;

/// The columns of a batch's records.
#[derive(Default)]
struct Records<'a> {
    first: Vec<bool>,
    id: Vec<i64>,
    lane_id: Vec<i64>,
    shard: Vec<i16>,
    destination: Vec<&'a str>,
    state: Vec<&'static str>,
    attempts: Vec<i32>,
    retry_ms: Vec<Option<i64>>,
    status: Vec<Option<i16>>,
    external_id: Vec<Option<String>>,
    class: Vec<Option<&'static str>>,
    reason: Vec<Option<String>>,
    answer: Vec<Option<String>>,
    took_ms: Vec<Option<i64>>,
    uncounted: Vec<i32>,
    withdrawn: Vec<bool>,
}

impl<'a> Records<'a> {
    fn add(&mut self, record: &'a DeliveryRecord, first: bool) {
        let failure = record.failure.as_ref();
        self.first.push(first);
        self.id.push(record.id);
        self.lane_id.push(record.lane_id);
        self.shard.push(sql_shard(record.shard));
        self.destination.push(&record.destination);
        self.state.push(record.state.as_str());
        self.attempts.push(sql_count(record.attempts));
        self.retry_ms.push(record.retry_in.map(|wait| millis(wait.as_millis())));
        self.status.push(record.status.and_then(|status| i16::try_from(status).ok()));
        self.external_id.push(record.external_id.as_deref().map(storable));
        self.class.push(failure.map(|failure| failure.class));
        self.reason.push(failure.map(|failure| storable(&failure.reason)));
        self.answer.push(failure.and_then(|failure| failure.answer.as_deref()).map(storable));
        self.took_ms.push(failure.map(|failure| millis(failure.took.as_millis())));
        self.uncounted.push(sql_count(record.uncounted));
        self.withdrawn.push(record.withdrawn);
    }
}

impl PostgresStore {
    pub(crate) async fn record(&self, batch: &SettleBatch, relay: RelayId) -> StoreResult<SettleReport> {
        let (term_shards, term_epochs) = columns_of(&batch.terms);
        let dispatched_shards: Vec<i16> =
            batch.dispatched.iter().map(|&(shard, _)| sql_shard(shard)).collect();
        let dispatched_ids: Vec<i64> = batch.dispatched.iter().map(|&(_, id)| id).collect();
        let dispatched: HashSet<OutboxId> = dispatched_ids.iter().copied().collect();

        let mut records = Records::default();
        let mut plain = true;
        for record in &batch.records {
            let first = dispatched.contains(&record.id);
            plain &= first && !record.state.is_unfinished();
            records.add(record, first);
        }

        let rows = self
            .settles
            .query(
                "record outcomes",
                &self.statements.settle,
                &[
                    (&relay, Type::UUID),
                    (&term_shards, Type::INT2_ARRAY),
                    (&term_epochs, Type::INT8_ARRAY),
                    (&dispatched_shards, Type::INT2_ARRAY),
                    (&dispatched_ids, Type::INT8_ARRAY),
                    (&plain, Type::BOOL),
                    (&records.first, Type::BOOL_ARRAY),
                    (&records.id, Type::INT8_ARRAY),
                    (&records.lane_id, Type::INT8_ARRAY),
                    (&records.shard, Type::INT2_ARRAY),
                    (&records.destination, Type::TEXT_ARRAY),
                    (&records.state, Type::TEXT_ARRAY),
                    (&records.attempts, Type::INT4_ARRAY),
                    (&records.retry_ms, Type::INT8_ARRAY),
                    (&records.status, Type::INT2_ARRAY),
                    (&records.external_id, Type::TEXT_ARRAY),
                    (&records.class, Type::TEXT_ARRAY),
                    (&records.reason, Type::TEXT_ARRAY),
                    (&records.answer, Type::TEXT_ARRAY),
                    (&records.took_ms, Type::INT8_ARRAY),
                    (&records.uncounted, Type::INT4_ARRAY),
                    (&records.withdrawn, Type::BOOL_ARRAY),
                ],
            )
            .await?;
        let refused = rows
            .iter()
            .map(|row| {
                let mut columns = Columns::of(row, "a refused term");
                Ok(Term { shard: columns.shard()?, epoch: columns.next()? })
            })
            .collect::<StoreResult<_>>()?;
        Ok(SettleReport { refused })
    }
}

impl PostgresStore {
    pub(crate) async fn begin_attempt(&self, beginning: &Beginning, relay: RelayId) -> StoreResult<bool> {
        let rows = self
            .others
            .query(
                "record that an attempt begins",
                &self.statements.begin,
                &[
                    (&relay, Type::UUID),
                    (&sql_shard(beginning.term.shard), Type::INT2),
                    (&beginning.term.epoch, Type::INT8),
                    (&beginning.id, Type::INT8),
                    (&&*beginning.destination, Type::TEXT),
                    (&sql_count(beginning.attempt), Type::INT4),
                    (&millis(beginning.decide_in.as_millis()), Type::INT8),
                ],
            )
            .await?;
        rows.first().map_or(Ok(false), |row| Columns::of(row, "whether an attempt may begin").next())
    }
}

pub(crate) fn columns_of(terms: &[Term]) -> (Vec<i16>, Vec<i64>) {
    terms.iter().map(|term| (sql_shard(term.shard), term.epoch)).unzip()
}

/// No wait is longer than a hundred years, which keeps every date one that SQL and Rust can hold.
fn millis(millis: u128) -> i64 {
    const HUNDRED_YEARS: i64 = 100 * 366 * 24 * 3_600 * 1_000;
    i64::try_from(millis).unwrap_or(HUNDRED_YEARS).min(HUNDRED_YEARS)
}

/// PostgreSQL's text cannot hold NUL, and one bad answer must not keep the whole batch from being recorded.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
