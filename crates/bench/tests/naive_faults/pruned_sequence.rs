//! Fault 4: what `MAX(seq)` cannot see any more, it forgets.

use std::time::Duration;

use postbox_bench::naive::{NewRow, Producer, Settings};
use postbox_core::operations::{Operations as _, PrunePolicy};
use postbox_testkit::receiver::{Answer, Script};
use serde_json::value::RawValue;

use crate::scene::{Events, Postbox, Reference, eager};

const BEFORE: Events = Events { aggregates: 1, each: 3, together: true };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sequence_begins_again_after_pruning_where_it_is_read_from_the_events_and_goes_on_in_the_lane() {
    let reference = Reference::set(Script::always(Answer::Ok)).await;
    reference.write(BEFORE).await;
    reference.work(1, Settings::default()).await;
    let client = reference.0.connect().await;
    assert_eq!(client.execute("DELETE FROM naive_outbox WHERE status = 'sent'", &[]).await.unwrap(), 3);
    let payload = RawValue::from_string("{}".to_owned()).unwrap();
    let row = NewRow {
        aggregate_type: "order",
        aggregate_id: "order-000",
        event_type: "order.changed",
        payload: &payload,
    };
    let next_naively = Producer::prepare(&client).await.unwrap().insert(&client, row).await.unwrap();

    let postbox = Postbox::set(Script::always(Answer::Ok)).await;
    postbox.write(BEFORE).await;
    postbox.drain(&eager()).await;
    let everything = PrunePolicy { older_than: Duration::ZERO, dead_older_than: Duration::ZERO };
    assert_eq!(postbox.store.prune(&everything, 0, 1_000).await.unwrap().changed, 3);
    postbox.write(Events { each: 1, ..BEFORE }).await;
    let next = postbox.outbox.number("SELECT aggregate_seq FROM outbox").await;

    println!("4, sequence after three were pruned: reference {next_naively}, Postbox {next}");
    assert_eq!(next_naively, 1, "the reference shows the fault");
    assert_eq!(next, 4);
}
