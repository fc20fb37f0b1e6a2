//! What a producer may rely on: plain SQL from any client, in the producer's own transaction.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use postbox_core::event::NewEvent;
use postbox_sqlite::{EnqueueError, enqueue, migrate};
use postbox_testkit::faults::Dice;
use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;
use uuid::Uuid;

struct Shop {
    directory: TempDir,
}

impl Shop {
    fn open() -> Self {
        let shop = Self { directory: TempDir::new().unwrap() };
        let mut connection = shop.connect();
        migrate(&mut connection).unwrap();
        connection.execute_batch("CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT NOT NULL)").unwrap();
        shop
    }

    fn connect(&self) -> Connection {
        let connection = Connection::open(self.directory.path().join("shop.db")).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
        connection
    }
}

fn confirmed(order: &str) -> NewEvent {
    NewEvent::new("order", order, "order.confirmed", &serde_json::json!({ "order": order })).unwrap()
}

fn count(connection: &Connection, table: &str) -> i64 {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// Sequences of one aggregate, in order of id.
fn sequences(connection: &Connection, order: &str) -> Vec<i64> {
    let mut statement =
        connection.prepare("SELECT aggregate_seq FROM outbox WHERE aggregate_id = ?1 ORDER BY id").unwrap();
    statement.query_map([order], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_plain_insert_is_enough() {
    let shop = Shop::open();
    let connection = shop.connect();
    connection
        .execute_batch(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', '7', 'order.created', '{}'), ('order', '8', 'order.created', '{}'),
                    ('order', '7', 'order.confirmed', '{}')",
        )
        .unwrap();
    assert_eq!((sequences(&connection, "7"), sequences(&connection, "8")), (vec![1, 2], vec![1]));
    assert_eq!(count(&connection, "outbox_pending"), 3);
    let (event_id, age): (String, i64) = connection
        .query_row("SELECT event_id, unixepoch() - created_at / 1000 FROM outbox WHERE id = 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let parsed: Uuid = event_id.parse().unwrap();
    assert_eq!((parsed.get_version_num(), parsed.to_string()), (7, event_id));
    assert!((0..60).contains(&age), "written {age} s ago");
    let (seconds, _) = parsed.get_timestamp().unwrap().to_unix();
    assert!(jiff::Timestamp::now().as_second().abs_diff(i64::try_from(seconds).unwrap()) < 60);
}

#[test]
fn rollback_removes_both_the_order_and_the_event() {
    let shop = Shop::open();
    let mut connection = shop.connect();
    let mut transaction = connection.transaction().unwrap();
    transaction.execute("INSERT INTO orders VALUES ('7', 'confirmed')", []).unwrap();
    enqueue(&mut transaction, &confirmed("7")).unwrap();
    transaction.rollback().unwrap();
    for table in ["orders", "outbox", "outbox_pending", "outbox_lane"] {
        assert_eq!(count(&shop.connect(), table), 0, "{table}");
    }
}

#[test]
fn commit_keeps_both_the_order_and_the_event() {
    let shop = Shop::open();
    let mut connection = shop.connect();
    let mut transaction = connection.transaction().unwrap();
    transaction.execute("INSERT INTO orders VALUES ('7', 'confirmed')", []).unwrap();
    let event_id = enqueue(&mut transaction, &confirmed("7")).unwrap();
    transaction.commit().unwrap();
    let other = shop.connect();
    assert_eq!((count(&other, "orders"), count(&other, "outbox_pending")), (1, 1));
    let stored: String = other.query_row("SELECT event_id FROM outbox", [], |row| row.get(0)).unwrap();
    assert_eq!(stored, event_id.to_string());
}

#[test]
fn writers_of_one_aggregate_leave_no_gap_whatever_they_roll_back() {
    const WRITERS: u64 = 8;
    const TRANSACTIONS: usize = 60;
    let shop = Shop::open();
    let repeated = Uuid::now_v7();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (shop, repeated) = (&shop, repeated);
            scope.spawn(move || {
                let mut dice = Dice::new(writer);
                let mut connection = shop.connect();
                for _ in 0..TRANSACTIONS {
                    write_at_random(&mut connection, &mut dice, repeated);
                }
            });
        }
    });
    let connection = shop.connect();
    let found = sequences(&connection, "hot");
    let last = i64::try_from(found.len()).unwrap();
    assert!(last > 100, "only {last} events were committed");
    assert!(found.iter().copied().eq(1..=last), "{found:?}");
    assert_eq!(count(&connection, "outbox_pending"), count(&connection, "outbox"));
}

/// One transaction with a few events, perhaps a savepoint that is rolled back, a repeated id, and its own end.
fn write_at_random(connection: &mut Connection, dice: &mut Dice, repeated: Uuid) {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    enqueue(&mut transaction, &confirmed("hot")).unwrap();
    if dice.below(2) == 0 {
        transaction.execute_batch("SAVEPOINT attempt").unwrap();
        enqueue(&mut transaction, &confirmed("hot")).unwrap();
        enqueue(&mut transaction, &confirmed("other")).unwrap();
        let end = if dice.below(2) == 0 { "ROLLBACK TO attempt; RELEASE attempt" } else { "RELEASE attempt" };
        transaction.execute_batch(end).unwrap();
    }
    if dice.below(2) == 0 {
        enqueue(&mut transaction, &NewEvent { event_id: Some(repeated), ..confirmed("hot") }).unwrap();
    }
    enqueue(&mut transaction, &confirmed("hot")).unwrap();
    if dice.below(3) == 0 {
        transaction.rollback().unwrap();
    } else {
        transaction.commit().unwrap();
    }
}

#[test]
fn a_repeated_event_id_inserts_nothing_and_leaves_no_gap() {
    let shop = Shop::open();
    let connection = shop.connect();
    let insert = |id: &str, clause: &str| {
        connection
            .execute(
                &format!(
                    "INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
                     VALUES (?1, 'order', '7', 'order.confirmed', '{{}}') {clause}"
                ),
                [id],
            )
            .unwrap()
    };
    let id = Uuid::now_v7().to_string();
    assert_eq!(insert(&id, ""), 1);
    assert_eq!(insert(&id, "ON CONFLICT (event_id) DO NOTHING"), 0);
    assert_eq!(insert(&id, "ON CONFLICT DO NOTHING"), 0);
    assert_eq!(insert(&Uuid::now_v7().to_string(), ""), 1);
    assert_eq!(sequences(&connection, "7"), [1, 2]);
    assert_eq!(count(&connection, "outbox_pending"), 2);
}

#[test]
fn a_sequence_that_does_not_follow_on_is_refused_by_name_and_leaves_the_transaction_whole() {
    let shop = Shop::open();
    let mut connection = shop.connect();
    let mut transaction = connection.transaction().unwrap();
    enqueue(&mut transaction, &confirmed("7")).unwrap();
    let wrong = NewEvent { aggregate_seq: Some(5), ..confirmed("7") };
    let error = enqueue(&mut transaction, &wrong).unwrap_err();
    assert_eq!(error.to_string(), "aggregate_seq of order 7 must be 2, not 5");
    assert!(matches!(error, EnqueueError::OutOfSequence { expected: 2, given: 5, .. }));

    let plain = transaction
        .execute(
            "INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_seq, event_type, payload)
             VALUES ('order', '7', 5, 'order.confirmed', '{}')",
            [],
        )
        .unwrap_err();
    assert!(plain.to_string().contains("outbox: aggregate_seq of order 7 must be 2, not 5"), "{plain}");

    enqueue(&mut transaction, &NewEvent { aggregate_seq: Some(2), ..confirmed("7") }).unwrap();
    transaction.commit().unwrap();
    assert_eq!(sequences(&connection, "7"), [1, 2]);
    assert_eq!(count(&connection, "outbox_pending"), 2);
}

#[test]
fn what_breaks_a_rule_is_refused_by_its_name() {
    let shop = Shop::open();
    let connection = shop.connect();
    let long = "x".repeat(10_000);
    for (column, value, rule) in [
        ("payload", "{\"a\":", "payload must be JSON"),
        ("payload", "", "payload must be JSON"),
        ("payload", "{}\0x", "payload must be JSON"),
        ("aggregate_id", long.as_str(), "aggregate_id must have 1 to 512 bytes"),
        ("aggregate_id", "", "aggregate_id must have 1 to 512 bytes"),
        ("aggregate_id", "7\0", "no control characters"),
        ("aggregate_type", "or\nder", "aggregate_type must have 1 to 512 bytes and no control characters"),
        (
            "event_type",
            "order confirmed",
            "event_type must have 1 to 512 bytes, all printable and none a space",
        ),
        ("event_type", "order\u{2003}confirmed", "none a space"),
        ("event_type", "order\u{7f}", "all printable"),
        ("headers", "[]", "headers must be a JSON object of text values"),
        ("headers", "tenant", "headers must be a JSON object of text values"),
        ("headers", "{\"tenant\":7}", "headers must be a JSON object of text values"),
        ("headers", "{\"tenant\":\"a\\u0000\"}", "headers must be a JSON object of text values"),
        ("headers", "{\"tenant\":\"\\ud800\"}", "headers must be a JSON object of text values"),
        ("event_id", "0190A000-0000-7000-8000-000000000000", "event_id must be a UUID in lower case"),
        ("event_id", "7", "event_id must be a UUID in lower case"),
        ("deliver_after", "1700000000", "deliver_after must be in milliseconds since 1970"),
        ("expires_at", "1700000000", "expires_at must be in milliseconds since 1970"),
        ("id", "-1", "leave them out"),
        ("lane_id", "1", "leave them out"),
    ] {
        let error = insert_with(&connection, column, value).unwrap_err().to_string();
        assert!(error.contains(rule), "{column} {value:.20?} gave: {error}");
    }
    assert_eq!((count(&connection, "outbox"), count(&connection, "outbox_lane")), (0, 0));
    let blob = connection
        .execute(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', '7', 'order.confirmed', jsonb('{}'))",
            [],
        )
        .unwrap_err();
    assert!(blob.to_string().contains("outbox.payload"), "{blob}");
}

#[test]
fn what_is_unusual_and_right_is_taken() {
    let shop = Shop::open();
    let connection = shop.connect();
    let just_short_enough = "ü".repeat(256);
    for (column, value) in [
        ("aggregate_id", just_short_enough.as_str()),
        ("aggregate_id", "it's \"42\" 😀"),
        ("event_type", "bestellung.bestätigt"),
        ("headers", "{}"),
        ("headers", "{\"tenant\":\"\\ud83d\\ude00 한글 ڀ\"}"),
        ("payload", " [1, 1.0e5, {\"a\": 1, \"a\": 2}]\n"),
        ("payload", "\"\\u0000 \\ud800 😀\""),
    ] {
        insert_with(&connection, column, value).unwrap_or_else(|error| panic!("{column} {value:?}: {error}"));
        let stored: String = connection
            .query_row(&format!("SELECT {column} FROM outbox ORDER BY id DESC LIMIT 1"), [], |row| row.get(0))
            .unwrap();
        assert_eq!(stored, value, "{column}");
    }
}

/// Inserts a good event with one column set to `value`.
fn insert_with(connection: &Connection, column: &str, value: &str) -> rusqlite::Result<usize> {
    let mut columns = vec![
        ("aggregate_type", "order"),
        ("aggregate_id", "7"),
        ("event_type", "order.confirmed"),
        ("payload", "{}"),
    ];
    columns.retain(|&(name, _)| name != column);
    columns.push((column, value));
    let names: Vec<&str> = columns.iter().map(|&(name, _)| name).collect();
    let sql =
        format!("INSERT INTO outbox ({}) VALUES ({})", names.join(", "), vec!["?"; names.len()].join(", "));
    connection.execute(&sql, rusqlite::params_from_iter(columns.iter().map(|&(_, value)| value)))
}

#[test]
fn refused_events_leave_their_transaction_to_go_on() {
    let shop = Shop::open();
    let mut connection = shop.connect();
    let mut transaction = connection.transaction().unwrap();
    let spaced = NewEvent { event_type: "order confirmed".to_owned(), ..confirmed("7") };
    let error = enqueue(&mut transaction, &spaced).unwrap_err();
    assert!(matches!(&error, EnqueueError::Refused { reason } if reason.contains("event_type")), "{error}");
    enqueue(&mut transaction, &confirmed("7")).unwrap();
    transaction.commit().unwrap();
    assert_eq!(sequences(&connection, "7"), [1]);
}

#[test]
fn status_and_health_read_as_people_expect() {
    let shop = Shop::open();
    let connection = shop.connect();
    connection
        .execute_batch(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
             VALUES ('order', '1', 'a', '{}'), ('order', '2', 'a', '{}'), ('order', '3', 'a', '{}');
             DELETE FROM outbox_pending WHERE id IN (1, 2);
             INSERT INTO outbox_delivery (outbox_id, destination, lane_id, shard, state, attempts, sent_at)
             VALUES (1, 'billing', 1, 1, 'delivered', 1, unixepoch() * 1000),
                    (2, 'billing', 2, 2, 'delivered', 1, unixepoch() * 1000);
             INSERT INTO outbox_delivery (outbox_id, destination, lane_id, shard, state, attempts)
             VALUES (2, 'audit', 2, 2, 'dead', 8);",
        )
        .unwrap();
    let unsent: Vec<(i64, String, i64)> = connection
        .prepare("SELECT id, state, attempts FROM outbox_status WHERE sent_at IS NULL ORDER BY id")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(unsent, [(2, "dead".to_owned(), 9), (3, "pending".to_owned(), 0)]);
    let recent: i64 = connection
        .query_row(
            "SELECT count(*) FROM outbox_status WHERE sent_at > datetime('now', '-1 minute') AND state = 'delivered'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(recent, 1, "moments compare with SQLite's own");
    let health: (i64, i64, i64) = connection
        .query_row("SELECT pending, struggling, dead FROM outbox_health", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(health, (1, 0, 1));
}

#[test]
fn a_connection_without_a_transaction_is_refused_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
