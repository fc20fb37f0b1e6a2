use uuid::Uuid;
use postbox_postgres::consumer::sqlx::accept;

async fn receive(pool: &mut sqlx_postgres::PgPool, event_id: &Uuid) {
    let _ = accept(pool, "billing", event_id).await;
}

fn main() {}
