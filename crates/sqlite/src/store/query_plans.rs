//! The plans of the statements whose cost must not grow with history: with empty tables, with full ones, and with
//! statistics gathered at the wrong moment.

use rusqlite::Connection;

use crate::schema::migrate;

/// Steps of the plan of `sql`, all values unknown.
fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let step: String = row.get("detail").unwrap();
        steps.push(step.replace("COVERING ", ""));
    }
    steps
}

/// A database with `receipts` delivered events, as many parked ones, and a third as many to do.
fn database(receipts: u32) -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection).unwrap();
    connection
        .execute_batch(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {receipts})
             INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             SELECT 'order', i % 97, 'order.confirmed', '{{}}' FROM n WHERE {receipts} > 0;
             INSERT INTO outbox_delivery (outbox_id, destination, lane_id, shard, state, attempts, sent_at)
             SELECT id, 'audit', lane_id, shard, 'delivered', 1, created_at FROM outbox WHERE id % 3 > 0;
             INSERT INTO outbox_delivery (outbox_id, destination, lane_id, shard, state, attempts, next_attempt_at)
             SELECT id, 'billing', lane_id, shard, iif(id % 7, 'waiting', 'retry'), 1, created_at
             FROM outbox WHERE id % 3 > 0;
             DELETE FROM outbox_pending WHERE id % 3 > 0;"
        ))
        .unwrap();
    connection
}

fn assert_plans(connection: &Connection, situation: &str) {
    for (sql, expected) in [
        (
            include_str!("sql/pending.sql"),
            &["SEARCH outbox_pending USING PRIMARY KEY (shard=? AND id>? AND id<?)"][..],
        ),
        (include_str!("sql/event.sql"), &["SEARCH outbox USING INTEGER PRIMARY KEY (rowid=?)"]),
        (
            include_str!("sql/due_heads.sql"),
            &[
                "SEARCH outbox_delivery USING INDEX outbox_delivery_due (destination=? AND shard=? AND next_attempt_at<?)",
            ],
        ),
        (
            include_str!("sql/lane_front.sql"),
            &["SEARCH outbox_delivery USING INDEX outbox_delivery_lane (lane_id=? AND destination=?)"],
        ),
        (
            include_str!("sql/heads.sql"),
            &["SEARCH outbox_delivery USING INDEX outbox_delivery_head (lane_id=?)"],
        ),
        (
            "DELETE FROM outbox_pending WHERE shard = ?1 AND id = ?2",
            &["SEARCH outbox_pending USING PRIMARY KEY (shard=? AND id=?)"],
        ),
        (
            include_str!("sql/record_update.sql"),
            &["SEARCH outbox_delivery USING PRIMARY KEY (outbox_id=? AND destination=?)"],
        ),
        (
            include_str!("sql/demote.sql"),
            &[
                "SEARCH outbox_delivery USING INDEX outbox_delivery_head (lane_id=? AND destination=? AND outbox_id>?)",
            ],
        ),
        (
            include_str!("sql/refill.sql"),
            &[
                "SEARCH event USING INDEX outbox_lane_seq (lane_id=? AND aggregate_seq>?)",
                "SEARCH pending USING PRIMARY KEY (shard=? AND id=?)",
            ],
        ),
        (
            include_str!("sql/next_destination.sql"),
            &["SEARCH outbox_delivery USING INDEX outbox_delivery_destination (destination>?)"],
        ),
    ] {
        assert_eq!(plan(connection, sql), expected, "{situation}: {sql}");
    }
    for sql in [include_str!("sql/destination.sql"), "SELECT * FROM outbox_health"] {
        let steps = plan(connection, sql);
        let large = ["SCAN outbox", "SCAN e", "SCAN event", "SCAN outbox_delivery"];
        let scanned =
            steps.iter().find(|step| large.contains(&step.split(" USING").next().unwrap_or_default()));
        assert_eq!(scanned, None, "{situation}: {sql}");
    }
}

#[test]
fn every_statement_of_the_relay_goes_by_its_index_whatever_the_tables_hold() {
    assert_plans(&database(0), "empty tables");
    let full = database(3_000);
    assert_plans(&full, "full tables without statistics");
    full.execute_batch("ANALYZE").unwrap();
    assert_plans(&full, "full tables with statistics");
    let historic = database(3_000);
    historic
        .execute_batch(
            "DELETE FROM outbox_pending; DELETE FROM outbox_delivery WHERE sent_at IS NULL; ANALYZE",
        )
        .unwrap();
    assert_plans(&historic, "statistics from when nothing was to do");
}
