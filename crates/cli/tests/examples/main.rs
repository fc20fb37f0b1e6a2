//! The examples, run end to end: a producer of theirs, a real relay, a consumer of theirs, each side on a database of its
//! own, and `postbox reconcile` at the end. The one in Rust has its test beside it.

#![expect(clippy::unwrap_used, reason = "a panic is the failing assertion, in what the tests share as well")]

mod languages;
mod stage;

use stage::Stage;

#[test]
fn psql_alone_produces_and_consumes() {
    let stage = Stage::set();
    let event_id = stage.psql_file(stage.shop_url(), "produce.sql", &[("order_id", "1"), ("total", "4200")]);
    let event_id = event_id.lines().next().unwrap();
    let received = [("event_id", event_id), ("order_id", "1"), ("total", "4200")];
    assert_eq!(stage.psql_file(stage.billing_url(), "consume.sql", &received), "");
    assert_eq!(stage.psql_file(stage.billing_url(), "consume.sql", &received), "duplicate");
    assert_eq!(stage.invoices(), "1|4200");
}

#[test]
fn python_from_a_transaction_to_an_invoice() {
    let stage = Stage::set();
    languages::succeeds(languages::python("test_producer.py").arg("-v"), &stage);
    stage.forget_events();
    let consumer = languages::consumer(languages::python("consumer.py"), &stage);
    for (order, total) in [("1", "4200"), ("2", "99")] {
        languages::succeeds(languages::python("producer.py").args([order, total]), &stage);
    }
    stage.delivers_once(consumer.url(), "1|4200\n2|99");
}

#[test]
fn node_from_a_transaction_to_an_invoice() {
    let stage = Stage::set();
    languages::succeeds(&mut languages::node(&stage, &["--test", "producer.test.mjs"]), &stage);
    stage.forget_events();
    let consumer = languages::consumer(languages::node(&stage, &["consumer.mjs"]), &stage);
    for (order, total) in [("1", "4200"), ("2", "99")] {
        languages::succeeds(&mut languages::node(&stage, &["producer.mjs", order, total]), &stage);
    }
    stage.delivers_once(consumer.url(), "1|4200\n2|99");
}
