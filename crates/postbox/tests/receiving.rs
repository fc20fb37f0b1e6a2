//! Receiving: one transaction for the inbox, what the event makes the service do, and what that tells others.

#![cfg(all(feature = "axum", feature = "tokio-postgres", feature = "sqlx", feature = "rusqlite"))]
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failing assertion")]

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, State};
use axum::routing::post;
use postbox::NewEvent;
use postbox::receiver::{Answer, HandlerError, Incoming, Receiver};
use postbox_testkit::postgres::{Database, PgCluster};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::{Client, NoTls, Transaction};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "0198f0c2-7d2e-7c31-9d60-0d6f3f0a51c4";

fn body(total: &str) -> String {
    format!(
        r#"{{"event_id":"{ID}","type":"order.confirmed","timestamp":"2026-01-02T03:04:05.678901Z","aggregate_type":"order","aggregate_id":"4711","sequence":1,"data":{{"total":{total}}}}}"#
    )
}

/// The headers of a request with this body, signed by the reference implementation.
fn signed(body: &str) -> [(&'static str, String); 3] {
    let now = jiff::Timestamp::now().as_second();
    let signature = standardwebhooks::Webhook::new(SECRET).unwrap().sign(ID, now, body.as_bytes()).unwrap();
    [("webhook-id", ID.to_owned()), ("webhook-timestamp", now.to_string()), ("webhook-signature", signature)]
}

fn incoming(total: &str) -> Incoming {
    let body = body(total);
    let headers = signed(&body);
    let header = |name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    Receiver::new([SECRET]).unwrap().open(header, body.as_bytes()).unwrap()
}

/// A service with an inbox, an outbox and a table of invoices.
fn billing() -> Database<'static> {
    let database = PgCluster::shared().database();
    database.sql(&postbox::tokio_postgres::migration_sql(None));
    database.sql("CREATE TABLE invoice (order_id text NOT NULL, total integer NOT NULL)");
    database
}

async fn connect(database_url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(database_url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// What is there of the event: its id in the inbox, its invoice, and the event that tells of that.
fn traces(database: &Database<'_>) -> String {
    database.sql(
        "SELECT (SELECT count(*) FROM inbox) || ' ' || (SELECT count(*) FROM invoice) || ' ' ||
            (SELECT count(*) FROM outbox WHERE event_type = 'invoice.issued')",
    )
}

/// Writes the invoice and tells of it; whether it likes the total decides what becomes of that.
async fn write_invoice(tx: &mut Transaction<'_>, event: &Incoming) -> Result<(), HandlerError> {
    #[derive(serde::Deserialize)]
    struct Confirmed {
        total: i32,
    }
    let Confirmed { total } = event.payload().map_err(|_| HandlerError::refused("no total"))?;
    tx.execute("INSERT INTO invoice VALUES ($1, $2)", &[&event.aggregate_id, &total]).await?;
    let issued = NewEvent::new("invoice", &event.aggregate_id, "invoice.issued", &[total])?;
    postbox::tokio_postgres::enqueue(tx, &issued).await?;
    if total < 0 { Err(std::io::Error::other("the printer is on fire").into()) } else { Ok(()) }
}

async fn receive(client: &mut Client, event: &Incoming) -> Answer {
    let tx = client.transaction().await.unwrap();
    postbox::tokio_postgres::receive(tx, "billing", event, write_invoice).await
}

#[tokio::test]
async fn an_event_its_effect_and_what_follows_from_it_commit_together_or_not_at_all() {
    let database = billing();
    let mut client = connect(&database.url()).await;
    let failed = receive(&mut client, &incoming("-1")).await;
    assert_eq!((failed.status(), failed.body()), (500, "failed"), "the reason is not for strangers");
    assert_eq!(failed, Answer::Failed("the printer is on fire".into()));
    assert_eq!(traces(&database), "0 0 0");
    let refused = receive(&mut client, &incoming("\"none\"")).await;
    assert_eq!((refused.status(), refused.body()), (422, "no total"));
    assert_eq!(traces(&database), "0 0 0");
    assert_eq!(receive(&mut client, &incoming("4200")).await, Answer::Done);
    assert_eq!(traces(&database), "1 1 1");
    // A total that would fail now: it is not even looked at.
    assert_eq!(receive(&mut client, &incoming("-1")).await, Answer::Duplicate);
    assert_eq!(traces(&database), "1 1 1");
}

#[tokio::test]
async fn nothing_is_confirmed_that_the_commit_refuses() {
    let database = billing();
    database.sql("ALTER TABLE invoice ADD UNIQUE (order_id) DEFERRABLE INITIALLY DEFERRED");
    database.sql("INSERT INTO invoice VALUES ('4711', 1)");
    let mut client = connect(&database.url()).await;
    assert_eq!(receive(&mut client, &incoming("4200")).await.status(), 500);
    assert_eq!(traces(&database), "0 1 0");
}

#[tokio::test]
async fn a_database_without_an_inbox_fails_and_says_why_in_the_log() {
    let database = PgCluster::shared().database();
    let mut client = connect(&database.url()).await;
    let answer = receive(&mut client, &incoming("1")).await;
    assert!(
        matches!(&answer, Answer::Failed(reason) if reason.contains("postbox migrate --inbox")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn sqlx_transactions_receive_too() {
    let database = billing();
    let pool = sqlx_postgres::PgPool::connect(&database.url()).await.unwrap();
    for (fails, answer, left) in [
        (true, Answer::Failed("no paper".into()), "0 0 0"),
        (false, Answer::Done, "1 0 1"),
        (false, Answer::Duplicate, "1 0 1"),
    ] {
        let tx = pool.begin().await.unwrap();
        let given = postbox::sqlx::receive(tx, "billing", &incoming("1"), async |tx, event| {
            let issued = NewEvent::new("invoice", &event.aggregate_id, "invoice.issued", &[1])?;
            postbox::sqlx::enqueue(tx, &issued).await?;
            if fails { Err(std::io::Error::other("no paper").into()) } else { Ok(()) }
        })
        .await;
        assert_eq!(given, answer);
        assert_eq!(traces(&database), left);
    }
}

#[test]
fn rusqlite_transactions_receive_too() {
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    postbox::rusqlite::migrate(&mut connection).unwrap();
    for (fails, answer, left) in [
        (true, Answer::Failed("no paper".into()), 0),
        (false, Answer::Done, 2),
        (false, Answer::Duplicate, 2),
    ] {
        let given = postbox::rusqlite::receive(&mut connection, "billing", &incoming("1"), |tx, event| {
            let issued = NewEvent::new("invoice", &event.aggregate_id, "invoice.issued", &[1])?;
            postbox::rusqlite::enqueue(tx, &issued)?;
            if fails { Err(std::io::Error::other("no paper").into()) } else { Ok(()) }
        });
        assert_eq!(given, answer);
        let rows = "SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM outbox)";
        assert_eq!(connection.query_row(rows, [], |row| row.get::<_, i64>(0)).unwrap(), left);
    }
}

#[derive(Clone)]
struct App {
    receiver: Arc<Receiver>,
    database_url: String,
}

impl FromRef<App> for Arc<Receiver> {
    fn from_ref(app: &App) -> Self {
        Self::clone(&app.receiver)
    }
}

async fn hooks(State(app): State<App>, event: Incoming) -> Answer {
    receive(&mut connect(&app.database_url).await, &event).await
}

/// Sends a request to `address` and gives the status of its answer.
async fn send(address: std::net::SocketAddr, headers: &[(&str, String)], body: &str) -> u16 {
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_axum_handler_sees_only_verified_events_and_answers_after_the_commit() {
    let database = billing();
    let receiver = Receiver::new([SECRET]).unwrap().max_body_bytes(1_000);
    let app = App { receiver: Arc::new(receiver), database_url: database.url() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", post(hooks)).with_state(app);
    tokio::spawn(axum::serve(listener, router).into_future());

    let good = body("4200");
    let long = format!("{good}{}", " ".repeat(1_000));
    assert_eq!(send(address, &[], &good).await, 401);
    assert_eq!(send(address, &signed(&body("9")), &good).await, 401);
    assert_eq!(send(address, &signed("{}"), "{}").await, 400);
    assert_eq!(send(address, &signed(&long), &long).await, 413);
    assert_eq!(send(address, &signed(&body("-1")), &body("-1")).await, 500);
    assert_eq!(traces(&database), "0 0 0");
    assert_eq!(send(address, &signed(&good), &good).await, 200);
    assert_eq!(send(address, &signed(&good), &good).await, 200);
    assert_eq!(traces(&database), "1 1 1");
}
