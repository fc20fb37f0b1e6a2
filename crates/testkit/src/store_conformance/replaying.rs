//! The way back: replay and discard keep lanes in order.

use std::time::Duration;

use postbox_core::delivery::DeliveryState::{self, Dead, Delivered, Discarded, Held, Retry, Waiting};
use postbox_core::delivery::{AttemptFailure, DeliveryRecord};
use postbox_core::operations::Selection;

use super::events::ids;
use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, HOUR, Scene, failure, only, record};

const UNFINISHED: [DeliveryState; 3] = [Retry, Waiting, Held];

/// A replayed dead letter is due at once, begins its attempts anew, is marked, and keeps its history.
pub async fn a_dead_letter_can_be_replayed(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    let unknown = AttemptFailure { class: "unknown", ..failure("no answer within 10 s") };
    scene
        .dispatch(vec![DeliveryRecord {
            attempts: 8,
            failure: Some(unknown),
            ..record(&events[0], BILLING, Dead)
        }])
        .await;
    let step = scene.operations.replay(&only(&events[0]), &[Dead], 0, 10).await.expect("replay");
    assert_eq!((step.changed, step.done), (1, true));
    let delivery = scene.delivery(&events[0], BILLING).await;
    assert_eq!((delivery.state.as_str(), delivery.attempts, delivery.replays), ("retry", 0, 1));
    assert_eq!(delivery.history.len(), 1);
    let due = scene.due(BILLING).await;
    let parked = &due[0].deliveries[0];
    assert_eq!((parked.event.id, parked.attempts, parked.replay), (events[0].id, 0, true));
    assert!(parked.maybe_delivered, "its last attempt ended unknown");

    scene.settle(vec![record(&events[0], BILLING, Delivered)]).await;
    let delivery = scene.delivery(&events[0], BILLING).await;
    assert_eq!((delivery.state.as_str(), delivery.attempts, delivery.replays), ("delivered", 1, 1));
    assert_eq!(delivery.history.len(), 1);
}

/// Failures after a replay are added to the history, though their attempts count from 1 again.
pub async fn a_replay_adds_to_the_history(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![DeliveryRecord { attempts: 8, ..record(&events[0], BILLING, Dead) }]).await;
    scene.operations.replay(&only(&events[0]), &[Dead], 0, 10).await.expect("replay");
    scene.settle(vec![record(&events[0], BILLING, Retry)]).await;
    let attempts: Vec<u32> =
        scene.delivery(&events[0], BILLING).await.history.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(attempts, [8, 1]);
}

/// Delivered events of one lane that are replayed go out in their order, one after the other.
pub async fn replayed_events_of_a_lane_go_out_in_order(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "1", "2"]).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Delivered)).collect()).await;
    let lane = Selection { aggregate_id: Some("1".to_owned()), ..Selection::default() };
    let step = scene.operations.replay(&lane, &[Delivered], 0, 100).await.expect("replay");
    assert_eq!(step.changed, 3);
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "waiting", "waiting", "delivered"]);
    assert_eq!(scene.due_ids(BILLING).await, [ids(&events[..3])]);
    let due = scene.due(BILLING).await;
    assert!(due[0].deliveries.iter().all(|parked| parked.replay && parked.attempts == 0));
    scene.settle(vec![record(&events[0], BILLING, Delivered)]).await;
    assert_eq!(scene.due_ids(BILLING).await, [ids(&events[1..3])]);
}

/// A replayed event becomes the head before later ones that were not delivered yet; those go on after it.
pub async fn a_replay_goes_before_what_is_parked_behind_it(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "1"]).await;
    scene
        .dispatch(vec![
            record(&events[0], BILLING, Dead),
            record(&events[1], BILLING, Retry),
            record(&events[2], BILLING, Waiting),
        ])
        .await;
    scene.operations.replay(&only(&events[0]), &[Dead], 0, 10).await.expect("replay");
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "waiting", "waiting"]);
    assert_eq!(scene.due_ids(BILLING).await, [ids(&events)]);
    scene.settle(vec![record(&events[0], BILLING, Delivered)]).await;
    assert_eq!(scene.states(&events, BILLING).await, ["delivered", "retry", "waiting"]);
    let next = scene.delivery(&events[1], BILLING).await;
    assert_eq!((next.attempts, next.replays), (1, 0), "it was overtaken, not replayed");
}

/// A replayed event blocks what is still on the to-do list of its lane.
pub async fn a_replay_goes_before_what_is_on_the_to_do_list(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Dead)]).await;
    assert!(scene.pending().await[0].blocked.is_empty());
    scene.operations.replay(&only(&events[0]), &[Dead], 0, 10).await.expect("replay");
    let blocked: Vec<String> = scene.pending().await[0].blocked.iter().map(|name| name.to_string()).collect();
    assert_eq!(blocked, [BILLING]);
}

/// A replay goes on in bounded batches, in order of id, and says when nothing is left.
pub async fn a_replay_goes_on_in_bounded_batches(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3", "4", "5"]).await;
    scene
        .dispatch(
            events
                .iter()
                .flat_map(|event| [record(event, BILLING, Dead), record(event, AUDIT, Delivered)])
                .collect(),
        )
        .await;
    let billing = Selection { destination: Some(BILLING.to_owned()), ..Selection::default() };
    let (mut after, mut changed) = (0, Vec::new());
    loop {
        let step = scene.operations.replay(&billing, &[Dead], after, 2).await.expect("replay");
        assert!(step.changed <= 2 && step.cursor >= after);
        changed.push(step.changed);
        after = step.cursor;
        assert!(changed.len() < 10, "the replay does not come to its end");
        if step.done {
            break;
        }
    }
    assert_eq!(changed.iter().sum::<u64>(), 5, "{changed:?}");
    assert!(scene.states(&events, BILLING).await.iter().all(|state| state == "retry"));
    assert!(scene.states(&events, AUDIT).await.iter().all(|state| state == "delivered"));
    assert_eq!(scene.operations.count_deliveries(&billing, &[Dead]).await.expect("count"), 0);
}

/// One limit counts deliveries, and no batch leaves out a destination of the event it ends with.
pub async fn batches_leave_out_no_destination_of_an_event(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2"]).await;
    let destinations = [BILLING, AUDIT, "mail"];
    scene
        .dispatch(
            events.iter().flat_map(|event| destinations.map(|name| record(event, name, Dead))).collect(),
        )
        .await;
    let (mut after, mut changed) = (0, 0);
    for _ in 0..10 {
        let step = scene.operations.replay(&Selection::default(), &[Dead], after, 4).await.expect("replay");
        (after, changed) = (step.cursor, changed + step.changed);
        if step.done {
            break;
        }
    }
    assert_eq!(changed, 6);
}

/// A held lane goes on once its head is replayed.
pub async fn a_held_lane_goes_on_once_its_head_is_replayed(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Held), record(&events[1], BILLING, Waiting)]).await;
    scene.operations.replay(&Selection::default(), &[Held], 0, 10).await.expect("replay");
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "waiting"]);
    assert_eq!(scene.due_ids(BILLING).await, [ids(&events)]);
    assert_eq!(scene.delivery(&events[0], BILLING).await.attempts, 0);
}

/// Discarding a head lets its lane go on with the next.
pub async fn a_discarded_head_makes_way_for_the_next(harness: &dyn StoreHarness) {
    for head in [Retry, Held] {
        let scene = Scene::new(harness).await;
        let lane = format!("lane whose head is {head:?}");
        let events = scene.commit(&[&lane, &lane]).await;
        scene.dispatch(vec![record(&events[0], BILLING, head), record(&events[1], BILLING, Waiting)]).await;
        let step = scene.operations.discard(&only(&events[0]), &[head], 0, 10).await.expect("discard");
        assert_eq!((step.changed, step.done), (1, true));
        assert_eq!(scene.states(&events, BILLING).await, [Discarded.as_str(), "retry"]);
        assert!(scene.due_ids(BILLING).await.contains(&ids(&events[1..])));
        scene.store.leave(scene.relay).await.expect("leave");
    }
}

/// A discarded dead letter is one no more, and can still be replayed by name.
pub async fn a_dead_letter_can_be_discarded(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2"]).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Dead)).collect()).await;
    scene.operations.discard(&only(&events[0]), &[Dead], 0, 10).await.expect("discard");
    assert_eq!(scene.states(&events, BILLING).await, ["discarded", "dead"]);
    let again = scene.operations.discard(&only(&events[0]), &[Dead], 0, 10).await.expect("discard");
    assert_eq!((again.changed, again.done), (0, true));
    scene.operations.replay(&only(&events[0]), &[Discarded], 0, 10).await.expect("replay");
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "dead"]);
}

/// What `selection` and `states` are not about stays as it is.
pub async fn commands_touch_only_what_was_selected(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3"]).await;
    scene
        .dispatch(vec![
            record(&events[0], BILLING, Dead),
            record(&events[0], AUDIT, Dead),
            record(&events[1], BILLING, Delivered),
            record(&events[2], BILLING, Dead),
        ])
        .await;
    let selection = Selection {
        destination: Some(BILLING.to_owned()),
        event_ids: vec![events[0].event_id, events[1].event_id],
        ..Selection::default()
    };
    let step = scene.operations.replay(&selection, &[Dead], 0, 10).await.expect("replay");
    assert_eq!(step.changed, 1);
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "delivered", "dead"]);
    assert_eq!(scene.delivery(&events[0], AUDIT).await.state, "dead");
}

/// A replay that was interrupted goes on with what was confirmed before it began, also when a relay has meanwhile
/// confirmed again what was put back first.
pub async fn an_interrupted_replay_goes_on_where_it_stopped(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3"]).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Delivered)).collect()).await;
    let began = scene.delivery(&events[2], BILLING).await.sent_at.expect("a receipt");
    let began = began + Duration::from_millis(1);
    let selection = Selection { sent_before: Some(began), ..Selection::default() };
    let count = || scene.operations.count_deliveries(&selection, &[Delivered]);
    assert_eq!(count().await.expect("count"), 3);
    scene.operations.replay(&selection, &[Delivered], 0, 1).await.expect("replay");
    while scene.operations.status().await.expect("status").now <= began {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    scene.settle(vec![record(&events[0], BILLING, Delivered)]).await;
    assert_eq!(count().await.expect("count"), 2);
    let step = scene.operations.replay(&selection, &[Delivered], 0, 10).await.expect("replay");
    assert_eq!((step.changed, step.done), (2, true));
    assert_eq!(scene.states(&events, BILLING).await, ["delivered", "retry", "retry"]);
}

/// Any mixture of settles and commands, drawn at random, leaves every lane with its head and loses nothing.
pub async fn any_mixture_of_settles_and_commands_keeps_the_heads(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let mut dice = crate::faults::Dice::new(7);
    let mut parked = Vec::new();
    for round in 0..40_u32 {
        match dice.below(5) {
            0 => {
                let names = ["1", "2", "3"];
                let events = scene.commit(&[names[dice.below(3)], names[dice.below(3)]]).await;
                scene.dispatch(events.iter().map(|event| record(event, BILLING, Waiting)).collect()).await;
                parked.extend(events);
            }
            1 | 2 => {
                for lane in scene.due(BILLING).await {
                    let head = &lane.deliveries[0];
                    let end = [Delivered, Dead, Held, Retry][dice.below(4)];
                    let attempts = head.attempts + 1;
                    scene
                        .settle(vec![DeliveryRecord { attempts, ..record(&head.event, BILLING, end) }])
                        .await;
                }
            }
            3 if !parked.is_empty() => {
                let event = &parked[dice.below(parked.len())];
                let states = [&[Dead, Delivered][..], &[Held], &[Discarded]][dice.below(3)];
                scene.operations.replay(&only(event), states, 0, 10).await.expect("replay");
            }
            _ if !parked.is_empty() => {
                let event = &parked[dice.below(parked.len())];
                scene.operations.discard(&only(event), &UNFINISHED, 0, 10).await.expect("discard");
            }
            _ => {}
        }
        scene.assert_heads().await;
        if round % 10 == 9 {
            scene.harness.pass_time(2 * HOUR).await;
        }
    }
    let known =
        scene.operations.count_deliveries(&Selection::default(), &DeliveryState::ALL).await.expect("count");
    assert_eq!(known, parked.len() as u64);
}

/// A command beside settles that run at the same time waits for them, and the heads are right in the end.
pub async fn commands_beside_running_settles_keep_the_heads(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let names: Vec<String> = (0..100).map(|n| format!("{}", n % 10)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let events = scene.commit(&names).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Waiting)).collect()).await;
    let settling = async {
        for _ in 0..10 {
            let lanes = scene.due(BILLING).await;
            scene
                .settle(
                    lanes
                        .iter()
                        .map(|lane| DeliveryRecord {
                            attempts: lane.deliveries[0].attempts + 1,
                            ..record(&lane.deliveries[0].event, BILLING, Delivered)
                        })
                        .collect(),
                )
                .await;
        }
    };
    let commanding = async {
        for event in events.iter().step_by(3) {
            scene.operations.discard(&only(event), &UNFINISHED, 0, 10).await.expect("discard");
            scene.operations.replay(&only(event), &[Delivered, Discarded], 0, 10).await.expect("replay");
        }
    };
    futures_util::future::join(settling, commanding).await;
    scene.assert_heads().await;
    let unfinished =
        scene.operations.count_deliveries(&Selection::default(), &UNFINISHED).await.expect("count");
    let delivered =
        scene.operations.count_deliveries(&Selection::default(), &[Delivered]).await.expect("count");
    assert_eq!(unfinished + delivered, 100, "nothing is lost");
}
