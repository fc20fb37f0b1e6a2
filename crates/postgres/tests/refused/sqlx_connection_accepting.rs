use uuid::Uuid;
use postbox_postgres::consumer::sqlx::accept;

async fn receive(connection: &mut sqlx_postgres::PgConnection, event_id: &Uuid) {
    let _ = accept(connection, "billing", event_id).await;
}

fn main() {}
