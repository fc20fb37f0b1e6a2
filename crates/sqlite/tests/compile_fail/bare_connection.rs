//! On a bare connection every statement commits on its own: the event could outlive the order, or the other way round.

fn main() {
    let mut connection = rusqlite::Connection::open("shop.db").unwrap();
    let event = postbox_core::event::NewEvent::new("order", "7", "order.confirmed", &()).unwrap();
    postbox_sqlite::enqueue(&mut connection, &event).unwrap();
}
