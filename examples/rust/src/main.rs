//! Writes an invoice for each confirmed order, once, however often the event comes, and tells of it by an event of its
//! own: the inbox, the invoice and the new event commit together or not at all.
//!
//! Needs `DATABASE_URL` (after `postbox migrate`, since it writes events too) and `WEBHOOK_SECRET`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, State};
use axum::routing::post;
use postbox::NewEvent;
use postbox::receiver::{Answer, HandlerError, Incoming, Receiver};
use tokio_postgres::{NoTls, Transaction};

#[derive(Clone)]
struct App {
    receiver: Arc<Receiver>,
    database_url: String,
}

/// How the extractor finds the secrets.
impl FromRef<App> for Arc<Receiver> {
    fn from_ref(app: &App) -> Self {
        Self::clone(&app.receiver)
    }
}

#[derive(serde::Deserialize)]
struct Confirmed {
    total: i32,
}

/// Called once per event, in the transaction that also remembers the event. What it returns as an error is rolled back.
async fn write_invoice(tx: &mut Transaction<'_>, event: &Incoming) -> Result<(), HandlerError> {
    let Confirmed { total } =
        event.payload().map_err(|_| HandlerError::refused("an order without a total"))?;
    let order = &event.aggregate_id;
    tx.execute("INSERT INTO invoice (order_id, total) VALUES ($1, $2)", &[order, &total]).await?;
    let issued = NewEvent::new("invoice", order, "invoice.issued", &[total])?;
    postbox::tokio_postgres::enqueue(tx, &issued).await?;
    Ok(())
}

/// By the time this runs, the signature is verified.
async fn hooks(State(app): State<App>, event: Incoming) -> Answer {
    let Ok((mut client, connection)) = tokio_postgres::connect(&app.database_url, NoTls).await else {
        return Answer::Unavailable;
    };
    tokio::spawn(connection);
    let Ok(tx) = client.transaction().await else { return Answer::Unavailable };
    let answer = postbox::tokio_postgres::receive(tx, "billing", &event, write_invoice).await;
    if let Answer::Failed(reason) = &answer {
        eprintln!("{}: {reason}", event.event_id);
    }
    answer
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let receiver = Arc::new(Receiver::new([std::env::var("WEBHOOK_SECRET")?])?);
    let app = App { receiver, database_url: std::env::var("DATABASE_URL")? };
    let port = std::env::var("PORT").ok().map_or(Ok(0), |port| port.parse())?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/", post(hooks)).with_state(app)).await?;
    Ok(())
}
