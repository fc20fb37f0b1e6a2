use postbox_core::event::NewEvent;
use postbox_postgres::producer::sqlx::enqueue;

async fn produce(pool: &mut sqlx_postgres::PgPool, event: &NewEvent) {
    let _ = enqueue(pool, event).await;
}

fn main() {}
