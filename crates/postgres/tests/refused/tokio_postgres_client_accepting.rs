use uuid::Uuid;
use postbox_postgres::consumer::tokio_postgres::accept;

async fn receive(client: &mut tokio_postgres::Client, event_id: &Uuid) {
    let _ = accept(client, "billing", event_id).await;
}

fn main() {}
