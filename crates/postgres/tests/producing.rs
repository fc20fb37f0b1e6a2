//! What producers write: with their business change or not at all, exactly as given, or refused with a clear error.

#![cfg(all(feature = "store", feature = "tokio-postgres"))]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

mod shop;

use postbox_core::event::{NewEvent, Payload};
use postbox_core::operations::Operations as _;
use postbox_core::store::{ScanRequest, ShardScan, Store as _};
use postbox_postgres::producer::EnqueueError;
use postbox_postgres::producer::tokio_postgres::{enqueue, enqueue_in};
use serde_json::value::RawValue;
use shop::{Shop, refusal};
use tokio_postgres::types::ToSql;

fn confirmed(order: &str) -> NewEvent {
    NewEvent::new("order", order, "order.confirmed", &serde_json::json!({ "order": order })).unwrap()
}

fn with_payload(text: &str) -> NewEvent {
    NewEvent { payload: RawValue::from_string(text.to_owned()).unwrap(), ..confirmed("1") }
}

#[tokio::test]
async fn rollback_removes_both_the_order_and_the_event() {
    let shop = Shop::open().await;
    let mut client = shop.client().await;
    for (order, commit) in [("kept", true), ("dropped", false)] {
        let mut tx = client.transaction().await.unwrap();
        tx.execute("INSERT INTO orders VALUES ($1)", &[&order]).await.unwrap();
        enqueue(&mut tx, &confirmed(order)).await.unwrap();
        if commit { tx.commit().await.unwrap() } else { tx.rollback().await.unwrap() }
    }
    assert_eq!(shop.database.sql("SELECT id FROM orders"), "kept");
    assert_eq!(shop.database.sql("SELECT aggregate_id FROM outbox"), "kept");
    shop.assert_todo_is_complete();
}

#[tokio::test]
async fn a_plain_insert_is_enough() {
    let shop = Shop::open().await;
    shop.database.sql(
        "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
         VALUES ('order', '1', 'order.confirmed', '{}'), ('order', '1', 'order.shipped', '{}')",
    );
    assert_eq!(
        shop.database.sql(
            "SELECT aggregate_seq, shard = lane_id % 64, event_id::text LIKE '________-____-7%' FROM outbox"
        ),
        "1|t|t\n2|t|t"
    );
    shop.assert_todo_is_complete();
}

#[tokio::test]
async fn drawn_event_ids_are_ordered_by_time() {
    let shop = Shop::open().await;
    shop.database.sql(
        "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
         SELECT 'order', 'a', 'x', '{}' FROM generate_series(1, 500)",
    );
    // Two ids of one microsecond are in no order; all others follow the clock.
    let inversions = shop.number(
        "SELECT count(*) FROM (
             SELECT left(replace(event_id::text, '-', ''), 16) AS time,
                 lag(left(replace(event_id::text, '-', ''), 16)) OVER (ORDER BY id) AS before
             FROM outbox) AS e
         WHERE time < before",
    );
    assert_eq!(inversions, 0);
}

#[tokio::test]
async fn a_repeated_event_id_returns_it_and_writes_nothing() {
    let shop = Shop::open().await;
    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();
    let first = enqueue(&mut tx, &confirmed("1")).await.unwrap();
    let again = NewEvent { event_id: Some(first), aggregate_seq: Some(1), ..confirmed("1") };
    assert_eq!(enqueue(&mut tx, &again).await.unwrap(), first);
    enqueue(&mut tx, &confirmed("1")).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(shop.sequences("1"), [1, 2]);
    shop.assert_todo_is_complete();
}

/// Payloads that jsonb would change or refuse are stored, and read by the relay, byte for byte.
#[tokio::test]
async fn a_payload_is_kept_byte_for_byte() {
    let shop = Shop::open().await;
    let mut client = shop.client().await;
    let big = format!("{{\"big\":\"{}\"}}", "x".repeat(5 * 1024 * 1024));
    let payloads = [
        r#"{"nul":"\u0000"}"#,
        r#"{"emoji":"📦","escaped":"\ud83d\udce6"}"#,
        r#"{"lone":"\ud800","other":"\udfff"}"#,
        "{ \"b\" : 1,\n\t\"a\": 1.00, \"a\": 2e1 }",
        "null",
        &big,
    ];
    for payload in payloads {
        let mut tx = client.transaction().await.unwrap();
        enqueue(&mut tx, &with_payload(payload)).await.unwrap();
        tx.commit().await.unwrap();
    }
    let request = ScanRequest {
        shards: (0..64).map(|shard| ShardScan { shard, floor: 0, cursor: 0 }).collect(),
        rows_per_shard: 100,
        rows_per_lane: 100,
        saturated: Vec::new(),
    };
    let scan = shop.store.scan(&request).await.unwrap();
    assert_eq!(scan.rows.len(), payloads.len());
    for (row, payload) in scan.rows.iter().zip(payloads) {
        let event = &row.arrival.as_ref().unwrap().event;
        assert_eq!(event.payload.len(), payload.len() as u64);
        let read = match &event.payload {
            Payload::Inline(text) => text.clone(),
            Payload::Deferred(_) => shop.store.payload(event.id).await.unwrap().unwrap(),
        };
        assert!(
            read == payload,
            "{} became {}",
            &payload[..20.min(payload.len())],
            &read[..20.min(read.len())]
        );
    }
}

#[tokio::test]
async fn a_jsonb_value_can_be_assigned_to_the_payload() {
    let shop = Shop::open().await;
    shop.database.sql(
        "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
         VALUES ('order', '1', 'order.confirmed', '{\"a\": 1}'::jsonb)",
    );
    assert_eq!(shop.database.sql("SELECT payload::jsonb ->> 'a' FROM outbox"), "1");
}

/// Each mistake has an error that names it, and a rule that a program can tell it by.
#[tokio::test]
async fn a_mistake_is_refused_with_a_clear_error() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    let long = "x".repeat(10_000);
    let insert = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers)
                  VALUES ($1, $2, $3, $4::text::json, $5::text::json)";
    let none: Option<&str> = None;
    let headers = |text: &'static str| Some(text);
    for (of_type, of_id, kind, payload, headers, state, rule, says) in [
        ("", "1", "x", "{}", none, "23514", "outbox_aggregate_type_empty", "aggregate_type is empty"),
        (
            "order",
            &*long,
            "x",
            "{}",
            none,
            "23514",
            "outbox_aggregate_id_length",
            "10000 bytes, the limit is 512",
        ),
        (
            "order",
            "1",
            "order confirmed",
            "{}",
            none,
            "23514",
            "outbox_event_type_characters",
            "holds a space",
        ),
        ("order", "1", "a\u{2003}b", "{}", none, "23514", "outbox_event_type_characters", "holds a space"),
        ("order", "1\n", "x", "{}", none, "23514", "outbox_aggregate_id_characters", "control character"),
        ("order", "1", "x", "no json", none, "22P02", "", "json"),
        ("order", "1", "x", "{}", headers("[1]"), "23514", "outbox_headers_object", "JSON object"),
        ("order", "1", "x", "{}", headers("\"a\""), "23514", "outbox_headers_object", "JSON object"),
        ("order", "1", "x", "{}", headers("{\"a\":1}"), "23514", "outbox_headers_object", "all text"),
        ("order", "1", "x", "{}", headers("{\"a\":null}"), "23514", "outbox_headers_object", "all text"),
    ] {
        let error = client.execute(insert, &[&of_type, &of_id, &kind, &payload, &headers]).await.unwrap_err();
        let (found_state, found_rule, message) = refusal(&error);
        assert_eq!((found_state.as_str(), found_rule.as_str()), (state, rule), "{message}");
        assert!(message.contains(says), "{message:?} should say {says:?}");
    }
    let missing = client
        .execute("INSERT INTO outbox (aggregate_type, event_type, payload) VALUES ('order', 'x', '{}')", &[])
        .await
        .unwrap_err();
    assert_eq!(refusal(&missing).1, "outbox_aggregate_id_empty");
    let endless = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, deliver_after)
                   VALUES ('order', '1', 'x', '{}', 'infinity')";
    assert_eq!(refusal(&client.execute(endless, &[]).await.unwrap_err()).1, "outbox_deliver_after_range");
    assert_eq!(shop.number("SELECT count(*) FROM outbox"), 0);
    assert_eq!(shop.number("SELECT count(*) FROM outbox_pending"), 0);
}

#[tokio::test]
async fn what_is_inside_the_limits_is_taken() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    let longest = "é".repeat(256);
    let parameters: [&(dyn ToSql + Sync); 3] = [&longest, &"Straße 7, \"Köln\"", &longest];
    let insert = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers)
                  VALUES ($1, $2, $3, '{}', '{\"tenant\": \"acme\", \"\": \"\"}')";
    client.execute(insert, &parameters).await.unwrap();
    let nothing = "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers)
                   VALUES ('order', '1', 'x', '{}', '{}')";
    client.execute(nothing, &[]).await.unwrap();
    assert_eq!(shop.number("SELECT count(*) FROM outbox_pending"), 2);
}

#[tokio::test]
async fn a_sequence_that_does_not_follow_names_the_aggregate_and_the_expected_number() {
    let shop = Shop::open().await;
    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();
    enqueue(&mut tx, &confirmed("order-77")).await.unwrap();
    let error =
        enqueue(&mut tx, &NewEvent { aggregate_seq: Some(5), ..confirmed("order-77") }).await.unwrap_err();
    let EnqueueError::Refused { message, rule, .. } = error else {
        panic!("not a refusal: {error:?}");
    };
    assert_eq!(rule.as_deref(), Some("outbox_aggregate_seq_follows"));
    assert!(message.contains("order-77") && message.contains("expected 2"), "{message}");
}

/// A role that may insert events, and nothing else, can produce; the rest of the tables stays closed to it.
#[tokio::test]
async fn the_right_to_insert_is_all_a_producer_needs() {
    let shop = Shop::open().await;
    let client = shop.client().await;
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE cashier; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
             GRANT INSERT ON outbox TO cashier;
             SET ROLE cashier;
             INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', '1', 'x', '{}')",
        )
        .await
        .unwrap();
    for forbidden in ["SELECT FROM outbox_pending", "SELECT outbox_leave(NULL)", "DELETE FROM outbox"] {
        let error = client.batch_execute(forbidden).await.unwrap_err();
        assert_eq!(refusal(&error).0, "42501", "{forbidden}");
    }
}

/// A table of the same name in front of the search path changes nothing for triggers and functions.
#[tokio::test]
async fn tables_in_a_schema_of_their_own_are_found_whatever_the_search_path() {
    let shop = Shop::open().await;
    let store = postbox_postgres::PostgresStore::connect(&shop.database.url(), Some("My \"App\"")).unwrap();
    store.migrate().await.unwrap();
    let mut client = shop.client().await;
    client.batch_execute("CREATE TEMP TABLE outbox_lane (decoy int)").await.unwrap();
    let mut tx = client.transaction().await.unwrap();
    enqueue_in("My \"App\"", &mut tx, &confirmed("1")).await.unwrap();
    tx.execute(
        "INSERT INTO \"My \"\"App\"\"\".outbox (aggregate_type, aggregate_id, event_type, payload)
         VALUES ('order', '1', 'x', '{}')",
        &[],
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(store.status().await.unwrap().pending.value, 2);
    assert_eq!(shop.store.status().await.unwrap().pending.value, 0);
    store.check_schema().await.unwrap();
}
