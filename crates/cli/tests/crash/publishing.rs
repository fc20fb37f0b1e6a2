//! Between the request and the record of it.

use std::time::Duration;

use postbox_testkit::postgres::PgCluster;
use postbox_testkit::process::eventually;
use postbox_testkit::receiver::{Answer, Receiver, Script};
use tokio_postgres::NoTls;

use crate::scene::{Scene, Timing};

const SHORT_LEASE: Timing = Timing {
    lease: Duration::from_secs(1),
    attempt: Duration::from_millis(600),
    retry: Duration::from_millis(50),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_publish_and_settle_gives_a_duplicate_with_the_same_id_not_a_loss() {
    let receiver = Receiver::start(Script::always(Answer::Ok)).await;
    let scene = Scene::set(PgCluster::shared(), &receiver.url(), SHORT_LEASE);
    let (lock, connection) = tokio_postgres::connect(&scene.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    // Deliveries can be read and none can be recorded.
    lock.batch_execute("BEGIN; LOCK TABLE outbox_delivery IN SHARE MODE").await.unwrap();
    let mut relay = scene.relay(&[]);
    scene.produce("a", 1);
    receiver.wait_for(1).await;
    eventually("the relay tries to record the delivery", || {
        scene.number("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0
    });
    relay.kill();
    // The server would carry out what it was sent, had it not noticed that the relay is gone.
    scene.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'postbox'",
    );
    lock.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(scene.number("SELECT count(*) FROM outbox_pending"), 1, "the event was taken for delivered");

    let _second = scene.relay(&[]);
    scene.drained();
    let received = receiver.requests();
    assert_eq!(received.len(), 2, "one delivery before the crash and one after it");
    assert!(received.iter().all(|request| request.was_confirmed()));
    assert_eq!(received[0].event_id, received[1].event_id);
    assert_eq!(received[0].body, received[1].body);
    assert_eq!(scene.delivered(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_in_the_middle_of_a_request_gives_the_same_event_again() {
    let receiver = Receiver::start(Script::in_order([Answer::Held, Answer::Ok])).await;
    let scene = Scene::set(PgCluster::shared(), &receiver.url(), SHORT_LEASE);
    let mut relay = scene.relay(&[]);
    scene.produce("a", 2);
    receiver.wait_for(1).await;
    relay.kill();
    let _second = scene.relay(&[]);
    scene.drained();
    let sequences: Vec<_> = receiver.requests().iter().map(|request| request.sequence.unwrap()).collect();
    assert_eq!(sequences, [1, 1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_stops_at_its_first_failure() {
    let script = Script::each(|request| {
        let is_first_of_a =
            request.aggregate.as_ref().is_some_and(|(_, id)| id == "a") && request.sequence == Some(1);
        let fails = is_first_of_a && request.attempt.unwrap() <= 3;
        if fails { Answer::Status(500) } else { Answer::Ok }
    });
    let receiver = Receiver::start(script).await;
    let timing = Timing { retry: Duration::from_millis(300), ..Timing::default() };
    let scene = Scene::set(PgCluster::shared(), &receiver.url(), timing);
    scene.produce("a", 3);
    scene.produce("b", 3);
    let _relay = scene.relay(&[]);
    scene.drained();
    let sent = |lane: &str| -> Vec<(usize, i64, u32)> {
        let of_lane = |id: &str| id == lane;
        let requests = receiver.requests().into_iter();
        requests
            .filter(|request| request.aggregate.as_ref().is_some_and(|(_, id)| of_lane(id)))
            .map(|request| (request.arrival, request.sequence.unwrap(), request.attempt.unwrap()))
            .collect()
    };
    let (failing, other) = (sent("a"), sent("b"));
    let steps: Vec<_> = failing.iter().map(|&(_, sequence, attempt)| (sequence, attempt)).collect();
    assert_eq!(steps, [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (3, 1)]);
    let steps: Vec<_> = other.iter().map(|&(_, sequence, attempt)| (sequence, attempt)).collect();
    assert_eq!(steps, [(1, 1), (2, 1), (3, 1)]);
    assert!(other[2].0 < failing[3].0, "the lane of another aggregate waited too");
}
