//! The plans of the hot statements, in every state of the statistics: an index for every table, whatever the planner
//! believes about their size.

#![cfg(feature = "store")]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

mod shop;

use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use shop::Shop;
use tokio_postgres::{AsyncMessage, NoTls};

const RELAY: &str = "00000000-0000-0000-0000-000000000001";

/// Runs `statement` and returns the plans of everything inside it, as auto_explain tells them.
async fn plans(shop: &Shop, statement: &str) -> String {
    let (client, mut connection) = tokio_postgres::connect(&shop.database.url(), NoTls).await.unwrap();
    let told = tokio::spawn(async move {
        let mut plans = String::new();
        let mut messages = std::pin::pin!(poll_fn(move |context| connection.poll_message(context)));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notice(notice) = message {
                plans.push_str(notice.message());
                plans.push('\n');
            }
        }
        plans
    });
    client
        .batch_execute(
            "LOAD 'auto_explain';
             SET auto_explain.log_min_duration = 0;
             SET auto_explain.log_nested_statements = on;
             SET auto_explain.log_level = notice",
        )
        .await
        .unwrap();
    client.batch_execute(statement).await.unwrap();
    drop(client);
    told.await.unwrap()
}

fn assert_only_indexes(plans: &str, tables: &[&str], state: &str) {
    for table in tables {
        assert!(plans.contains(&format!(" on {table}")), "{state}: {table} was not read:\n{plans}");
    }
    for forbidden in ["Seq Scan on outbox", "Bitmap", "Hash Join", "Merge Join", "Hash Anti", "Merge Anti"] {
        assert!(!plans.contains(forbidden), "{state}: {forbidden}:\n{plans}");
    }
    // An index without a condition on it is a table scan by another name.
    let mut lines = plans.lines().map(str::trim_start).peekable();
    while let Some(line) = lines.next() {
        if line.contains("Scan using") {
            let condition = lines.peek().copied().unwrap_or_default();
            assert!(condition.starts_with("Index Cond"), "{state}: {line} reads everything:\n{plans}");
        }
    }
}

/// Runs `check` on an empty, never analysed database; on one analysed while empty and then filled; on a full one; and
/// on one whose to-do list has been worked off, with a long history.
async fn in_every_state(check: impl AsyncFn(&Shop, &str)) {
    let shop = Shop::open().await;
    check(&shop, "new").await;
    shop.database.sql("VACUUM ANALYZE");
    check(&shop, "analysed while empty").await;
    shop.database.sql(
        "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
         SELECT 'order', (n % 500)::text, 'order.changed', '{}' FROM generate_series(1, 5000) AS n",
    );
    check(&shop, "filled since").await;
    shop.database.sql("ANALYZE");
    check(&shop, "full").await;
    shop.database.sql(
        "INSERT INTO outbox_delivery (outbox_id, lane_id, shard, destination, state, attempts, next_attempt_at)
         SELECT id, lane_id, shard, 'billing', CASE WHEN id % 100 = 0 THEN 'retry' ELSE 'delivered' END, 1, now()
         FROM outbox_pending WHERE id < 4990;
         DELETE FROM outbox_pending WHERE id < 4990;
         ANALYZE",
    );
    check(&shop, "worked off").await;
}

#[tokio::test]
async fn a_scan_reads_by_index_in_every_state_of_the_statistics() {
    in_every_state(async |shop, state| {
        let scan = "SELECT * FROM outbox_scan('{0,1,2}', '{0,0,0}', '{0,10,0}', 100, 5, '{1,2}')";
        let found = plans(shop, scan).await;
        assert_only_indexes(&found, &["outbox_pending", "outbox e", "outbox_delivery"], state);
        let lines: Vec<&str> = found.lines().collect();
        assert!(
            lines.windows(2).any(|pair| pair[0].contains("Limit") && pair[1].contains("outbox_pending_pkey")),
            "{state}: the limit is not applied to the index itself:\n{found}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_refill_and_a_load_read_by_index_in_every_state_of_the_statistics() {
    in_every_state(async |shop, state| {
        let refill = plans(shop, "SELECT * FROM outbox_refill(1::smallint, 'order', '1', 0, 10)").await;
        assert_only_indexes(&refill, &["outbox_pending", "outbox e"], state);
        assert!(refill.contains("outbox_aggregate_seq_key"), "{state}: {refill}");
        let load = plans(shop, "SELECT * FROM outbox_load('{1,1}', '{1,2}')").await;
        assert_only_indexes(&load, &["outbox_pending", "outbox e"], state);
    })
    .await;
}

#[tokio::test]
async fn due_lanes_are_read_by_index_in_every_state_of_the_statistics() {
    in_every_state(async |shop, state| {
        let due = plans(shop, "SELECT * FROM outbox_due('{0,1,2}', '{billing,audit}', '{10,10}', 5)").await;
        assert_only_indexes(&due, &["outbox_delivery", "outbox e"], state);
        assert!(due.contains("outbox_delivery_due"), "{state}: {due}");
        assert!(due.contains("outbox_delivery_lane"), "{state}: {due}");
    })
    .await;
}

#[tokio::test]
async fn a_settle_writes_by_index_in_every_state_of_the_statistics() {
    in_every_state(async |shop, state| {
        shop.database.sql(&format!("UPDATE outbox_shard SET owner = '{RELAY}', epoch = 1"));
        for (plain, word) in [(true, "delivered"), (false, "retry")] {
            let settle = format!(
                "SELECT * FROM outbox_settle('{RELAY}', '{{1,2}}', '{{1,1}}', '{{1,2}}', '{{4993,4994}}', {plain},
                     '{{t,f}}', '{{4993,4994}}', '{{1,2}}', '{{1,2}}', '{{billing,billing}}', '{{{word},{word}}}',
                     '{{1,1}}', '{{5,5}}', '{{200,200}}', '{{NULL,NULL}}', '{{NULL,NULL}}', '{{NULL,NULL}}',
                     '{{NULL,NULL}}', '{{NULL,NULL}}', '{{0,0}}', '{{f,f}}')"
            );
            let found = plans(shop, &settle).await;
            assert_only_indexes(&found, &["outbox_pending", "outbox_delivery", "outbox_shard"], state);
            assert_eq!(found.contains("outbox_delivery_lane"), !plain, "{state}: {found}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_attempt_begins_by_index_in_every_state_of_the_statistics() {
    in_every_state(async |shop, state| {
        shop.database.sql(&format!("UPDATE outbox_shard SET owner = '{RELAY}', epoch = 1"));
        let begin =
            format!("SELECT * FROM outbox_begin('{RELAY}', 1::smallint, 1, 4993, 'billing', 1, 120000)");
        let found = plans(shop, &begin).await;
        assert_only_indexes(&found, &["outbox_delivery", "outbox_shard"], state);
        assert!(found.contains("outbox_delivery_pkey"), "{state}: {found}");
    })
    .await;
}

#[tokio::test]
async fn a_producer_reads_by_index_in_every_state_of_the_statistics() {
    in_every_state(async |shop, state| {
        let insert = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
                      VALUES ('order', '1', 'x', '{}'), ('order', '1', 'x', '{}')";
        let found = plans(shop, insert).await;
        assert_only_indexes(&found, &["outbox_lane", "outbox e"], state);
        assert!(found.contains("outbox_aggregate_seq_key"), "{state}: {found}");
    })
    .await;
}

#[tokio::test]
async fn a_consumer_reads_by_index_whenever_its_session_began() {
    let shop = Shop::open().await;
    for state in ["new", "analysed while empty", "full"] {
        // The plans of the first calls are kept while the tables fill up.
        let found = plans(
            &shop,
            "DO $$ BEGIN FOR n IN 1..20 LOOP
                 PERFORM inbox_accept('billing', gen_random_uuid(), 'order', n::text, 1);
             END LOOP; END $$;
             INSERT INTO inbox_sequence (consumer, aggregate_type, aggregate_id, last_seq)
             SELECT 'shipping', gen_random_uuid()::text, '1', 1 FROM generate_series(1, 5000);
             SELECT inbox_accept('billing', gen_random_uuid(), 'order', '1', 2)",
        )
        .await;
        assert!(found.contains("inbox_sequence_pkey"), "{state}: {found}");
        assert!(!found.contains("Seq Scan on inbox"), "{state}: {found}");
        if state == "new" {
            shop.database.sql("TRUNCATE inbox, inbox_sequence");
        }
        shop.database.sql("VACUUM ANALYZE");
    }
}

#[tokio::test]
async fn a_comparison_reads_each_page_of_both_sides_in_order_by_index() {
    let shop = Shop::open().await;
    shop.database.sql(
        "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
         SELECT 'order', (n % 500)::text, 'order.changed', '{}' FROM generate_series(1, 5000) AS n;
         INSERT INTO inbox (consumer, event_id) SELECT 'billing', event_id FROM outbox",
    );
    shop.database.sql("VACUUM ANALYZE");
    let after = "'80000000-0000-0000-0000-000000000000'";
    for (file, name, index) in [
        (include_str!("../src/inbox/received.sql"), "'billing'", "inbox_pkey"),
        (include_str!("../src/operating/sent.sql"), "'billing'", "outbox_event_id_key"),
    ] {
        let page = file.replace("@.", "").replace("$1", name).replace("$2", after).replace("$3", "50");
        let found = plans(&shop, &page).await;
        assert!(found.contains(index), "{found}");
        assert!(!found.contains("Seq Scan on inbox") && !found.contains("Seq Scan on outbox o"), "{found}");
    }
}
