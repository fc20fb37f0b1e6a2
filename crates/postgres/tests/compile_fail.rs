//! The dual write does not compile: an event can neither be written nor accepted outside a transaction.

#![cfg(all(feature = "tokio-postgres", feature = "sqlx"))]

#[test]
fn pools_clients_and_connections_are_refused() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
