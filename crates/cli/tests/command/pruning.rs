//! `postbox prune`.

use crate::bench::Bench;
use crate::receiver::Receiver;

#[test]
fn finished_events_go_when_old_enough_and_the_sequence_goes_on() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    bench.produce("42", "order.confirmed");
    bench
        .run(&["prune", "--older-than", "0s", "--dead-older-than", "0s"])
        .succeeded()
        .says(&["0 events removed"]);
    bench.run(&["relay", "--once"]).succeeded();
    bench.run(&["prune"]).succeeded().says(&["0 events removed"]);
    bench.run(&["prune", "--older-than", "0s", "--dry-run"]).succeeded().says(&["1 event would be removed"]);
    bench.run(&["prune", "--older-than", "0s"]).succeeded().says(&["1 event removed"]);
    bench.run(&["events", "list"]).succeeded().says(&["no events"]);
    bench.produce("42", "order.shipped");
    let left = bench.run(&["events", "list", "--json"]).succeeded().json();
    assert_eq!(left["events"][0]["aggregate_seq"], 2);
}

#[test]
fn dead_letters_stay_within_their_own_retention() {
    let (bench, receiver) = (Bench::migrated(), Receiver::start());
    bench.write_destination(&receiver.url(), "");
    receiver.answer(503);
    bench.produce("42", "order.confirmed");
    bench.exhaust_retries();
    bench.run(&["prune", "--older-than", "0s"]).succeeded().says(&["0 events removed"]);
    bench
        .run(&["prune", "--older-than", "0s", "--dead-older-than", "0s"])
        .succeeded()
        .says(&["1 event removed"]);
}

#[test]
fn a_prune_that_cannot_keep_up_says_so_with_1() {
    let bench = Bench::migrated();
    let mut connection = bench.sqlite();
    let transaction = connection.transaction().unwrap();
    for n in 0..5_001 {
        transaction
            .execute(
                "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', ?1, 'x', '{}')",
                [n.to_string()],
            )
            .unwrap();
    }
    transaction.commit().unwrap();
    drop(connection);
    let receiver = Receiver::start();
    bench.write_destination(&receiver.url(), "");
    // No destination wants these, so they are finished as unrouted without a request.
    bench.run(&["relay", "--once"]).succeeded().says(&["5001 unrouted"]);
    let args = ["prune", "--older-than", "0s", "--dead-older-than", "0s", "--max-batches"];
    bench
        .run(&[&args[..], &["1"]].concat())
        .ended_with(1)
        .says(&["5000 events removed"])
        .complains(&["did not keep up"]);
    bench.run(&[&args[..], &["10"]].concat()).succeeded().says(&["1 event removed"]);
    bench
        .run(&["prune", "--older-than", "2d", "--dead-older-than", "1d"])
        .ended_with(2)
        .complains(&["is shorter than"]);
}
