//! A shop whose orders, outbox and relay share one SQLite file and one process.
//!
//! `cargo run -p postbox --example shop --features rusqlite,relay`

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use postbox::NewEvent;
use postbox::relay::{
    Attempt, Binding, CancellationToken, Confirmation, Destination, Outcome, RelayConfig, Route, Sink,
    SqliteStore,
};
use rusqlite::{Connection, TransactionBehavior};

/// A destination of our own: it prints what it gets.
struct Printer;

#[async_trait]
impl Sink for Printer {
    async fn deliver(&self, attempt: &Attempt) -> Outcome {
        let event = &attempt.event;
        println!(
            "{} {} #{}: {}",
            event.aggregate_type, event.aggregate_id, event.aggregate_seq, event.event_type
        );
        Outcome::Delivered(Confirmation::default())
    }
}

/// Changes an order and tells of it, or does neither.
fn change(connection: &mut Connection, order: &str, state: &str) -> Result<(), Box<dyn Error>> {
    let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute("INSERT OR REPLACE INTO orders (id, state) VALUES (?1, ?2)", [order, state])?;
    let event = NewEvent::new("order", order, format!("order.{state}"), &[state])?;
    postbox::rusqlite::enqueue(&mut tx, &event)?;
    tx.commit()?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    let mut connection = Connection::open(&file)?;
    postbox::rusqlite::migrate(&mut connection)?;
    connection.execute_batch("CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT)")?;
    for state in ["placed", "confirmed", "shipped"] {
        change(&mut connection, "4711", state)?;
        change(&mut connection, "4712", state)?;
    }

    let printer = Binding {
        destination: Destination::new(
            "printer",
            Route { events: vec!["order.*".into()], ..Route::default() },
        ),
        sink: Arc::new(Printer),
    };
    let config = RelayConfig { once: true, ..RelayConfig::default() };
    let store = Arc::new(SqliteStore::open(&file)?);
    let summary = postbox::relay::run(config, store, vec![printer], CancellationToken::new()).await?;
    println!("{} delivered", summary.counters.delivered);
    Ok(())
}

#[test]
fn the_example_runs() {
    main().expect("the relay delivers what the shop wrote");
}
