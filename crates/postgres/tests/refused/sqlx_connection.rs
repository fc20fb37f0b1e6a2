use postbox_core::event::NewEvent;
use postbox_postgres::producer::sqlx::enqueue;

async fn produce(connection: &mut sqlx_postgres::PgConnection, event: &NewEvent) {
    let _ = enqueue(connection, event).await;
}

fn main() {}
