//! Reading the to-do list.
//!
//! SQLite lets one transaction write at a time, so an id is drawn only after every lower one was committed or rolled
//! back, and nothing ever shows up behind a cursor: the floor is always the cursor.

use std::collections::{HashMap, HashSet};

use postbox_core::event::{LaneId, OutboxId};
use postbox_core::store::{Scan, ScanRequest, ScanRow, ShardScan, ShardScanned};
use rusqlite::{Connection, named_params};

use super::event::ArrivalReader;
use super::failure::Attempt;

/// Scans the shards of `request` in one snapshot.
pub(crate) fn scan(connection: &mut Connection, request: &ScanRequest) -> Attempt<Scan> {
    let snapshot = connection.transaction()?;
    let saturated: HashSet<LaneId> = request.saturated.iter().copied().collect();
    let mut reader = ArrivalReader::new(&snapshot)?;
    let mut scan = Scan::default();
    for shard in &request.shards {
        if shard.floor < shard.cursor {
            scan_known(&snapshot, shard, &saturated, &mut scan)?;
        }
        scan_new(&snapshot, shard, request, &saturated, &mut reader, &mut scan)?;
    }
    Ok(scan)
}

/// Rows between floor and cursor, by id alone.
fn scan_known(
    snapshot: &Connection,
    shard: &ShardScan,
    saturated: &HashSet<LaneId>,
    scan: &mut Scan,
) -> rusqlite::Result<()> {
    // Without a limit: the caller has room for what it was told before.
    for (id, lane_id) in pending(snapshot, shard, shard.floor, shard.cursor, -1)? {
        if !saturated.contains(&lane_id) {
            scan.rows.push(ScanRow { shard: shard.shard, id, lane_id, arrival: None });
        }
    }
    Ok(())
}

/// Rows beyond the cursor, the first of each aggregate with their events.
fn scan_new(
    snapshot: &Connection,
    shard: &ShardScan,
    request: &ScanRequest,
    saturated: &HashSet<LaneId>,
    reader: &mut ArrivalReader<'_>,
    scan: &mut Scan,
) -> rusqlite::Result<()> {
    let begin = shard.cursor.max(shard.floor);
    let rows = pending(snapshot, shard, begin, OutboxId::MAX, i64::from(request.rows_per_shard))?;
    let cursor = rows.last().map_or(shard.cursor, |&(id, _)| id);
    scan.shards.push(ShardScanned {
        shard: shard.shard,
        cursor,
        floor: cursor.max(shard.floor),
        more: rows.len() >= usize::try_from(request.rows_per_shard).unwrap_or(usize::MAX),
    });
    let mut rows_of_lane: HashMap<LaneId, u32> = HashMap::new();
    for (id, lane_id) in rows {
        let count = rows_of_lane.entry(lane_id).or_default();
        *count += 1;
        if saturated.contains(&lane_id) || *count > request.rows_per_lane {
            scan.rows.push(ScanRow { shard: shard.shard, id, lane_id, arrival: None });
        } else if let Some(arrival) = reader.arrival(id)? {
            scan.rows.push(ScanRow { shard: shard.shard, id, lane_id, arrival: Some(arrival) });
        }
    }
    Ok(())
}

fn pending(
    snapshot: &Connection,
    shard: &ShardScan,
    above: OutboxId,
    up_to: OutboxId,
    limit: i64,
) -> rusqlite::Result<Vec<(OutboxId, LaneId)>> {
    snapshot
        .prepare_cached(include_str!("sql/pending.sql"))?
        .query_map(
            named_params! { ":shard": shard.shard, ":above": above, ":up_to": up_to, ":limit": limit },
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect()
}
