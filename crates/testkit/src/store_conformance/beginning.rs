//! Attempts that are committed before their request is written.

use std::time::Duration;

use postbox_core::delivery::DeliveryState::{Dead, Delivered, Held, Waiting};
use postbox_core::delivery::{AttemptFailure, DeliveryRecord, ParkedDelivery};
use postbox_core::event::Event;
use postbox_core::lease::Term;
use postbox_core::operations::Selection;
use postbox_core::store::Beginning;

use super::due::due_now;
use super::harness::StoreHarness;
use super::scene::{BILLING, HOUR, Scene, failure, only, record};

impl Scene<'_> {
    /// Begins attempt number `attempt` at [`BILLING`], to be decided after `decide_in`.
    async fn begin(&self, event: &Event, attempt: u32, decide_in: Duration) -> bool {
        self.begin_under(event, attempt, decide_in, self.terms[&event.shard]).await
    }

    async fn begin_under(&self, event: &Event, attempt: u32, decide_in: Duration, term: Term) -> bool {
        let beginning = Beginning { id: event.id, destination: BILLING.into(), term, attempt, decide_in };
        self.store.begin(&beginning, self.relay).await.expect("begin")
    }

    /// The one delivery that is due at [`BILLING`].
    async fn due_one(&self) -> ParkedDelivery {
        let lanes = self.due(BILLING).await;
        let [lane] = lanes.as_slice() else { panic!("one lane: {lanes:?}") };
        lane.deliveries[0].clone()
    }
}

fn unknown(reason: &str) -> Option<AttemptFailure> {
    Some(AttemptFailure { class: "unknown", ..failure(reason) })
}

/// What began is not due before it is to be decided, and then comes back with that attempt and the doubt.
pub async fn a_begun_attempt_comes_back_in_doubt_when_it_is_to_be_decided(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(vec![due_now(&events[0], BILLING), record(&events[1], BILLING, Waiting)]).await;
    assert!(scene.begin(&events[0], 2, HOUR).await);
    assert!(scene.due(BILLING).await.is_empty());
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "waiting"]);
    scene.harness.pass_time(HOUR + Duration::from_secs(1)).await;
    let parked = scene.due_one().await;
    assert_eq!((parked.attempts, parked.maybe_delivered), (2, true));
}

/// Beginning the same attempt again changes nothing but the time; an earlier one is refused.
pub async fn beginning_again_is_harmless_and_an_earlier_attempt_is_refused(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Waiting)]).await;
    assert!(scene.begin(&events[0], 1, HOUR).await);
    assert!(scene.begin(&events[0], 1, Duration::ZERO).await);
    assert_eq!(scene.due_one().await.attempts, 1);
    assert!(scene.begin(&events[0], 2, Duration::ZERO).await);
    assert!(!scene.begin(&events[0], 1, Duration::ZERO).await);
    assert_eq!(scene.due_one().await.attempts, 2);
    let history = scene.delivery(&events[0], BILLING).await.history;
    let told: Vec<_> = history.iter().map(|attempt| (attempt.attempt, attempt.class.as_str())).collect();
    assert_eq!(told, [(1, "unknown")], "what became of the first is not known");
}

/// Nothing begins under a term that is not current.
pub async fn nothing_begins_under_a_lost_term(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![due_now(&events[0], BILLING)]).await;
    let term = scene.terms[&events[0].shard];
    assert!(!scene.begin_under(&events[0], 2, HOUR, Term { epoch: term.epoch - 1, ..term }).await);
    scene.store.hand_back(scene.relay, &[term]).await.expect("hand back");
    assert!(!scene.begin(&events[0], 2, HOUR).await);
    let parked = scene.due_one().await;
    assert_eq!((parked.attempts, parked.maybe_delivered), (1, false));
}

/// Only a head that may be sent begins.
pub async fn only_a_head_begins(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "2", "3", "4", "5"]).await;
    scene
        .dispatch(vec![
            due_now(&events[0], BILLING),
            record(&events[1], BILLING, Waiting),
            record(&events[2], BILLING, Delivered),
            record(&events[3], BILLING, Held),
            record(&events[4], BILLING, Dead),
        ])
        .await;
    for event in &events[1..] {
        assert!(!scene.begin(event, 2, HOUR).await, "event {}", event.id);
    }
    assert_eq!(scene.states(&events[..5], BILLING).await, ["retry", "waiting", "delivered", "held", "dead"]);
}

/// What became of an attempt that was begun is recorded once, however often the batch is sent.
pub async fn the_outcome_of_a_begun_attempt_is_recorded_once(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Waiting)]).await;
    assert!(scene.begin(&events[0], 1, HOUR).await);
    for _ in 0..2 {
        scene.settle(vec![due_now(&events[0], BILLING)]).await;
    }
    let parked = scene.due_one().await;
    assert_eq!((parked.attempts, parked.maybe_delivered), (1, false));
    let told = scene.delivery(&events[0], BILLING).await;
    assert_eq!((told.history.len(), told.status), (1, Some(503)));
    assert_eq!(told.last_error.as_deref(), Some("answered 503 Service Unavailable"));
    assert!(scene.begin(&events[0], 2, HOUR).await);
    scene.settle(vec![DeliveryRecord { attempts: 2, ..record(&events[0], BILLING, Delivered) }]).await;
    let told = scene.delivery(&events[0], BILLING).await;
    assert_eq!((told.state.as_str(), told.attempts, told.history.len()), ("delivered", 2, 1));
}

/// A record from before the beginning does not undo it; one that says that the attempt was not made does.
pub async fn only_a_withdrawal_undoes_a_beginning(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Waiting)]).await;
    assert!(scene.begin(&events[0], 1, HOUR).await);
    let put_off = DeliveryRecord { attempts: 0, failure: None, status: None, ..due_now(&events[0], BILLING) };
    scene.settle(vec![put_off.clone()]).await;
    assert!(scene.due(BILLING).await.is_empty());
    scene.settle(vec![DeliveryRecord { withdrawn: true, ..put_off }]).await;
    let parked = scene.due_one().await;
    assert_eq!((parked.attempts, parked.maybe_delivered), (0, false));
    assert!(scene.begin(&events[0], 1, HOUR).await, "the number is free again");
}

/// A delivery can be given up for want of evidence, after the attempt in doubt was recorded or not.
pub async fn a_lane_is_held_for_want_of_evidence(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2"]).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Waiting)).collect()).await;
    for event in &events {
        assert!(scene.begin(event, 1, Duration::ZERO).await);
    }
    scene
        .settle(vec![DeliveryRecord { failure: unknown("no answer"), ..due_now(&events[0], BILLING) }])
        .await;
    for event in &events {
        let held = DeliveryRecord { failure: unknown("no evidence"), ..record(event, BILLING, Held) };
        scene.settle(vec![held]).await;
        let told = scene.delivery(event, BILLING).await;
        assert_eq!((told.state.as_str(), told.attempts), ("held", 1));
        assert_eq!((told.last_error.as_deref(), told.history.len()), (Some("no evidence"), 1));
    }
}

/// An operator who has it sent again takes the doubt away.
pub async fn a_replay_begins_anew(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Waiting)]).await;
    assert!(scene.begin(&events[0], 1, Duration::ZERO).await);
    let held = DeliveryRecord { failure: unknown("no evidence"), ..record(&events[0], BILLING, Held) };
    scene.settle(vec![DeliveryRecord { uncounted: 1, ..held }]).await;
    scene.operations.replay(&only(&events[0]), &[Held], 0, 100).await.expect("replay");
    let parked = scene.due_one().await;
    assert_eq!((parked.attempts, parked.uncounted, parked.replay), (0, 0, true));
    assert!(scene.begin(&events[0], 1, HOUR).await);
}

/// Attempts that do not count are remembered.
pub async fn uncounted_attempts_are_remembered(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![DeliveryRecord { uncounted: 1, ..due_now(&events[0], BILLING) }]).await;
    assert_eq!(scene.due_one().await.uncounted, 1);
    let again = DeliveryRecord { attempts: 4, uncounted: 3, ..due_now(&events[0], BILLING) };
    scene.settle(vec![again]).await;
    let parked = scene.due_one().await;
    assert_eq!((parked.attempts, parked.uncounted), (4, 3));
}

/// A head that an earlier delivery comes ahead of keeps its time: it is not decided early.
pub async fn a_begun_head_keeps_its_time_when_an_earlier_one_is_replayed(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Dead), record(&events[1], BILLING, Waiting)]).await;
    assert!(scene.begin(&events[1], 1, HOUR).await);
    let everything = Selection { destination: Some(BILLING.to_owned()), ..Selection::default() };
    scene.operations.replay(&everything, &[Dead], 0, 100).await.expect("replay");
    assert_eq!(scene.states(&events, BILLING).await, ["retry", "waiting"]);
    scene.settle(vec![record(&events[0], BILLING, Delivered)]).await;
    assert_eq!(scene.states(&events, BILLING).await, ["delivered", "retry"]);
    assert!(scene.due(BILLING).await.is_empty());
    scene.harness.pass_time(HOUR + Duration::from_secs(1)).await;
    assert!(scene.due_one().await.maybe_delivered);
}
