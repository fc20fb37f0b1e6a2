use postbox_core::event::NewEvent;
use postbox_postgres::producer::tokio_postgres::enqueue;

async fn produce(client: &mut tokio_postgres::Client, event: &NewEvent) {
    let _ = enqueue(client, event).await;
}

fn main() {}
