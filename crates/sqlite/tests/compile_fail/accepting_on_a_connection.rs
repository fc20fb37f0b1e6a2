//! On a bare connection every statement commits on its own: the id could outlive its effect, or the other way round.

fn main() {
    let mut connection = rusqlite::Connection::open("shop.db").unwrap();
    let event_id = uuid::Uuid::now_v7();
    let _ = postbox_sqlite::accept(&mut connection, "billing", &event_id).unwrap();
}
