//! The example as a process, a relay that delivers to it, and what it leaves in the database.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use std::process::{Command, Stdio};
use std::sync::Arc;

use postbox::NewEvent;
use postbox::relay::{
    Binding, CancellationToken, Destination, Operations as _, PostgresStore, RelayConfig, Route,
    WebhookConfig, WebhookSink,
};
use postbox_testkit::postgres::PgCluster;
use postbox_testkit::process::Process;
use tokio_postgres::NoTls;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[tokio::test]
async fn each_order_gets_one_invoice_and_each_invoice_one_event() {
    let database = PgCluster::shared().database();
    let store = Arc::new(PostgresStore::connect(&database.url(), None).unwrap());
    store.migrate().await.unwrap();
    database.sql(include_str!("../../sql/billing.sql"));
    let (mut client, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    for order in ["1", "2"] {
        let mut tx = client.transaction().await.unwrap();
        let confirmed =
            NewEvent::new("order", order, "order.confirmed", &serde_json::json!({ "total": 4200 }));
        postbox::tokio_postgres::enqueue(&mut tx, &confirmed.unwrap()).await.unwrap();
        tx.commit().await.unwrap();
    }

    let mut consumer = Command::new(env!("CARGO_BIN_EXE_postbox-example"));
    consumer.env("DATABASE_URL", database.url()).env("WEBHOOK_SECRET", SECRET).env_remove("PORT");
    let mut consumer = Process::spawn({
        consumer.stdin(Stdio::null()).stdout(Stdio::piped());
        consumer
    });
    let url = consumer.told("listening on ");
    for _ in 0..2 {
        let mut webhook = WebhookConfig::new(&url);
        webhook.secrets = vec![SECRET.into()];
        let billing = Binding {
            destination: Destination::new(
                "billing",
                Route { events: vec!["order.*".into()], ..Route::default() },
            ),
            sink: Arc::new(WebhookSink::new(webhook).unwrap()),
        };
        let config = RelayConfig { once: true, ..RelayConfig::default() };
        postbox::relay::run(config, store.clone(), vec![billing], CancellationToken::new()).await.unwrap();
        assert_eq!(database.sql("SELECT order_id, total FROM invoice ORDER BY order_id"), "1|4200\n2|4200");
        let told = "SELECT count(*) FROM outbox WHERE event_type = 'invoice.issued'";
        assert_eq!(database.sql(told), "2");
        // As after a lost answer: both are sent once more.
        database.sql(
            "INSERT INTO outbox_pending (shard, id, lane_id) SELECT shard, id, lane_id FROM outbox
             WHERE event_type = 'order.confirmed';
             DELETE FROM outbox_delivery WHERE destination = 'billing'",
        );
    }
}
