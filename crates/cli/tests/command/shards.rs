//! `postbox shards`.

use crate::bench::Bench;
use crate::receiver::Receiver;

#[test]
fn a_running_relay_owns_every_shard_and_a_stopped_one_none() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let owners = || {
        let shards =
            bench.run(&["shards", "--json"]).succeeded().json()["shards"].as_array().unwrap().clone();
        assert_eq!(shards.len(), 64);
        shards.iter().filter(|shard| !shard["owner"].is_null()).count()
    };
    assert_eq!(owners(), 0);
    let mut relay = bench.start(&["relay"]);
    bench.wait_for_log("lease held");
    assert_eq!(owners(), 64);
    bench.run(&["shards"]).succeeded().says(&["SHARD", "EPOCH", "LEASE LEFT", "\n63"]);
    bench.run(&["status"]).succeeded().says(&["EPOCH", "LEASE LEFT"]);
    relay.signal("TERM");
    assert_eq!(relay.wait(), Some(0));
    assert_eq!(owners(), 0);
}

#[test]
fn the_json_has_the_documented_fields() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    let _relay = bench.start(&["relay"]);
    bench.wait_for_log("lease held");
    let shards = bench.run(&["shards", "--json"]).succeeded().json();
    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md")).unwrap();
    let first = shards["shards"][0].as_object().unwrap();
    for field in first.keys().chain(first["owner"].as_object().unwrap().keys()) {
        assert!(documented.contains(&format!("`{field}`")), "{field} is not documented");
    }
}
