//! The lease calls; the protocol is in `postbox_core::lease`, the statements in `schema/0003_leasing.sql`.

use postbox_core::event::Shard;
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term};
use postbox_core::store::StoreResult;
use tokio_postgres::types::Type;

use crate::reading::{Columns, sql_count, unreadable};
use crate::settling::columns_of;
use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) async fn beat(&self, heartbeat: &Heartbeat, joined: bool) -> StoreResult<LeaseAnswer> {
        let ttl_ms = i64::try_from(heartbeat.ttl.as_millis()).unwrap_or(i64::from(i32::MAX));
        let blocked = serde_json::to_value(&heartbeat.blocked).unwrap_or_default();
        let rows = self
            .leases
            .query(
                "renew the lease",
                &self.statements.heartbeat,
                &[
                    (&heartbeat.relay, Type::UUID),
                    (&heartbeat.label, Type::TEXT),
                    (&ttl_ms, Type::INT8),
                    (&sql_count(heartbeat.in_flight), Type::INT4),
                    (&heartbeat.accepting, Type::BOOL),
                    (&joined, Type::BOOL),
                    (&heartbeat.destinations_version, Type::INT8),
                    (&blocked, Type::JSONB),
                ],
            )
            .await?;
        let row = rows.first().ok_or_else(|| unreadable("a lease", None))?;
        let mut columns = Columns::of(row, "a lease");
        if columns.next()? {
            return Ok(LeaseAnswer::Evicted);
        }
        let live: i32 = columns.next()?;
        let shards: Vec<i16> = columns.next()?;
        let epochs: Vec<i64> = columns.next()?;
        let terms = shards
            .into_iter()
            .zip(epochs)
            .filter_map(|(shard, epoch)| Some(Term { shard: Shard::try_from(shard).ok()?, epoch }))
            .collect();
        Ok(LeaseAnswer::Held { terms, live: u32::try_from(live).unwrap_or(1) })
    }

    pub(crate) async fn give_back(&self, relay: RelayId, terms: &[Term]) -> StoreResult<()> {
        let (shards, epochs) = columns_of(terms);
        self.leases
            .query(
                "hand shards back",
                &self.statements.hand_back,
                &[(&relay, Type::UUID), (&shards, Type::INT2_ARRAY), (&epochs, Type::INT8_ARRAY)],
            )
            .await
            .map(drop)
    }

    pub(crate) async fn resign(&self, relay: RelayId) -> StoreResult<()> {
        self.leases.query("leave", &self.statements.leave, &[(&relay, Type::UUID)]).await.map(drop)
    }
}
