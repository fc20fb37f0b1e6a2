//! Taking in what a destination reports later of its messages.

use jiff::{Timestamp, ToSpan};
use postbox_core::callback::CallbackMark;
use postbox_core::delivery::DeliveryState::{Dead, Delivered, Discarded, Held, Waiting};
use postbox_core::delivery::{AttemptFailure, DeliveryRecord};
use postbox_core::event::{Event, NewEvent};
use postbox_core::operations::PrunePolicy;
use postbox_core::reports::{MessageReport, MessageStatus, ReportPolicy, ReportsTaken};
use postbox_core::store::Beginning;

use super::due::due_now;
use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, DAY, HOUR, Scene, failure, order, record};

fn policy(follow_ups: &[MessageStatus]) -> ReportPolicy {
    ReportPolicy { destinations: vec![BILLING.to_owned()], follow_ups: follow_ups.to_vec() }
}

/// A report on the message that attempt number `attempt` for `event` became.
fn report(event: &Event, attempt: u32, status: MessageStatus) -> MessageReport {
    MessageReport {
        external_id: format!("wamid.{}", event.id),
        mark: Some(CallbackMark { event_id: event.event_id, attempt }),
        status,
        at: Timestamp::from_second(1_750_000_000).expect("a moment") + 10.seconds(),
        error: (status == MessageStatus::Failed).then(|| (131_026, "Message undeliverable".to_owned())),
    }
}

impl Scene<'_> {
    async fn take_in(&self, reports: &[MessageReport], follow_ups: &[MessageStatus]) -> ReportsTaken {
        self.harness.reports().await.take_in(reports, &policy(follow_ups)).await.expect("take in")
    }

    async fn begin_one(&self, event: &Event, attempt: u32) {
        let (term, decide_in) = (self.terms[&event.shard], HOUR);
        let beginning = Beginning { id: event.id, destination: BILLING.into(), term, attempt, decide_in };
        assert!(self.store.begin(&beginning, self.relay).await.expect("begin"));
    }

    async fn told(&self, event: &Event) -> Vec<(String, Option<u32>, Option<String>)> {
        let reports = self.story(event).await.reports;
        reports.into_iter().map(|report| (report.status, report.attempt, report.error)).collect()
    }
}

/// An attempt that nobody knows the outcome of is settled by a report on it: its lane goes on.
pub async fn evidence_settles_an_attempt_in_doubt(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1"]).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Waiting)).collect()).await;
    scene.begin_one(&events[0], 1).await;
    let taken = scene.take_in(&[report(&events[0], 1, MessageStatus::Sent)], &[]).await;
    assert_eq!(taken, ReportsTaken { recorded: 1, resolved: 1, ..ReportsTaken::default() });
    let settled = scene.delivery(&events[0], BILLING).await;
    assert_eq!((settled.state.as_str(), settled.attempts), ("delivered", 1));
    assert_eq!(settled.external_id, Some(format!("wamid.{}", events[0].id)));
    assert!(settled.sent_at.is_some() && settled.next_attempt_at.is_none());
    assert_eq!(scene.due_ids(BILLING).await, [vec![events[1].id]]);
    // The relay's own news of it comes too late to change anything.
    scene.settle(vec![due_now(&events[0], BILLING)]).await;
    assert_eq!(scene.states(&events, BILLING).await, ["delivered", "retry"]);
}

/// What an operator is to decide, and what was given up in doubt, is settled by evidence as well.
pub async fn evidence_settles_what_is_held_and_what_was_given_up_in_doubt(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3"]).await;
    let doubt = Some(AttemptFailure { class: "unknown", ..failure("no evidence came") });
    scene
        .dispatch(vec![
            DeliveryRecord { failure: doubt.clone(), ..record(&events[0], BILLING, Held) },
            DeliveryRecord { failure: doubt, ..record(&events[1], BILLING, Dead) },
            record(&events[2], BILLING, Dead),
        ])
        .await;
    let reports: Vec<_> = events.iter().map(|event| report(event, 1, MessageStatus::Delivered)).collect();
    assert_eq!(scene.take_in(&reports, &[]).await.resolved, 2);
    assert_eq!(scene.states(&events, BILLING).await, ["delivered", "delivered", "dead"]);
}

/// A report proves only its own attempt, at a destination that it may be about, and changes nothing that is decided.
pub async fn a_report_settles_nothing_else(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "2", "3", "4"]).await;
    scene
        .dispatch(vec![
            due_now(&events[0], BILLING),
            due_now(&events[1], AUDIT),
            record(&events[2], BILLING, Discarded),
            DeliveryRecord {
                external_id: Some("wamid.known".to_owned()),
                ..record(&events[3], BILLING, Delivered)
            },
        ])
        .await;
    let reports = [
        report(&events[0], 2, MessageStatus::Sent),
        report(&events[1], 1, MessageStatus::Sent),
        report(&events[2], 1, MessageStatus::Sent),
        report(&events[3], 1, MessageStatus::Sent),
    ];
    let taken = scene.take_in(&reports, &[]).await;
    assert_eq!((taken.recorded, taken.resolved, taken.unmatched), (4, 0, 0));
    assert_eq!(scene.delivery(&events[0], BILLING).await.state, "retry");
    assert_eq!(scene.delivery(&events[1], AUDIT).await.state, "retry");
    assert_eq!(scene.delivery(&events[2], BILLING).await.state, "discarded");
    assert_eq!(scene.delivery(&events[3], BILLING).await.external_id.as_deref(), Some("wamid.known"));
}

/// A status is recorded once, in whatever order they come, and told in the order in which they happened.
pub async fn repeated_and_disordered_reports_are_told_once_and_in_order(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Delivered)]).await;
    let at = |status, seconds: i64| {
        let report = report(&events[0], 1, status);
        MessageReport { at: report.at + seconds.seconds(), ..report }
    };
    let (sent, delivered, read) =
        (at(MessageStatus::Sent, 0), at(MessageStatus::Delivered, 1), at(MessageStatus::Read, 2));
    let taken = scene.take_in(&[read.clone(), sent.clone(), sent.clone()], &[]).await;
    assert_eq!((taken.recorded, taken.repeated), (2, 1));
    assert_eq!(scene.take_in(&[delivered, read], &[]).await.recorded, 1);
    let told: Vec<_> =
        scene.told(&events[0]).await.into_iter().map(|(status, attempt, _)| (status, attempt)).collect();
    let one = |word: &str| (word.to_owned(), Some(1));
    assert_eq!(told, [one("sent"), one("delivered"), one("read")]);
}

/// A step forward that the policy names writes one event in the same transaction; a repetition, or what comes too late,
/// writes none.
pub async fn a_step_forward_writes_one_event(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let origin = scene.commit(&["42"]).await.remove(0);
    let headers = serde_json::json!({ "postbox-origin": origin.event_id, "tenant": "acme" });
    let message = NewEvent {
        aggregate_type: "whatsapp/support".into(),
        headers: Some(serde_json::value::to_raw_value(&headers).expect("JSON")),
        ..order("customer-17")
    };
    let message = scene.commit_events(&[message]).await.remove(0);
    scene.dispatch(vec![record(&origin, BILLING, Delivered), record(&message, BILLING, Delivered)]).await;
    let failed = report(&message, 1, MessageStatus::Failed);
    let wanted = [MessageStatus::Failed, MessageStatus::Delivered];
    let sent = report(&message, 1, MessageStatus::Sent);
    assert_eq!(scene.take_in(&[failed.clone(), failed.clone(), sent], &wanted).await.enqueued, 1);
    let follow_up = scene.pending().await.remove(0).event;
    assert_eq!(
        (&*follow_up.aggregate_type, &*follow_up.aggregate_id, &*follow_up.event_type),
        ("order", "42", "whatsapp.status.failed")
    );
    let payload = scene.store.payload(follow_up.id).await.expect("payload").expect("it exists");
    let payload: serde_json::Value = serde_json::from_str(&payload).expect("JSON");
    assert_eq!(payload["event_id"], origin.event_id.to_string());
    assert_eq!(payload["external_id"], format!("wamid.{}", message.id));
    assert_eq!((&payload["status"], &payload["at"]), (&"failed".into(), &"2025-06-15T15:06:50Z".into()));
    assert_eq!(payload["error"], serde_json::json!({ "code": 131_026, "title": "Message undeliverable" }));
    assert!(follow_up.headers.as_deref().is_some_and(|headers| headers.contains("acme")));
    // On a device after all is a step; to have failed is none any more.
    let delivered = report(&message, 1, MessageStatus::Delivered);
    assert_eq!(scene.take_in(&[delivered], &wanted).await.enqueued, 1);
    let late = MessageReport { external_id: "wamid.other".to_owned(), ..failed };
    let read = MessageReport { status: MessageStatus::Read, error: None, ..late.clone() };
    assert_eq!(scene.take_in(&[read, late], &wanted).await.enqueued, 0);
    assert_eq!(scene.told(&message).await.len(), 5);
}

/// What fits no event is kept, and told with the event whose receipt bears the name.
pub async fn an_unmatched_report_is_joined_by_the_receipts_name(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    let unmarked = MessageReport { mark: None, ..report(&events[0], 1, MessageStatus::Failed) };
    assert_eq!(scene.take_in(std::slice::from_ref(&unmarked), &[]).await.unmatched, 1);
    let external_id = Some(unmarked.external_id.clone());
    scene.dispatch(vec![DeliveryRecord { external_id, ..record(&events[0], BILLING, Delivered) }]).await;
    let told = [("failed".to_owned(), None, Some("131026 Message undeliverable".to_owned()))];
    assert_eq!(scene.told(&events[0]).await, told);
    // Now that the receipt is there, the next one finds its event at once.
    let read = MessageReport { status: MessageStatus::Read, error: None, ..unmarked };
    assert_eq!(scene.take_in(&[read], &[]).await.unmatched, 0);
}

/// Reports go with their events, and those of nobody's messages when they are old.
pub async fn reports_are_pruned_with_their_events(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1"]).await;
    scene.dispatch(vec![record(&events[0], BILLING, Delivered)]).await;
    let stranger = MessageReport {
        external_id: "wamid.stranger".to_owned(),
        mark: None,
        ..report(&events[0], 1, MessageStatus::Sent)
    };
    let reports = [report(&events[0], 1, MessageStatus::Read), stranger];
    assert_eq!(scene.take_in(&reports, &[]).await.recorded, 2);
    scene.harness.pass_time(DAY * 2).await;
    let policy = PrunePolicy { older_than: DAY, dead_older_than: DAY };
    assert_eq!(scene.operations.prune(&policy, 0, 100).await.expect("prune").changed, 1);
    let again = scene.take_in(&reports, &[]).await;
    assert_eq!((again.recorded, again.unmatched), (2, 2), "nothing of them was left");
}

/// Two calls that bring the same reports at once record each once.
pub async fn calls_at_once_record_each_report_once(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let aggregates: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let names: Vec<&str> = aggregates.iter().map(String::as_str).collect();
    let events = scene.commit(&names).await;
    scene.dispatch(events.iter().map(|event| record(event, BILLING, Waiting)).collect()).await;
    for event in &events {
        scene.begin_one(event, 1).await;
    }
    let mut reports: Vec<_> = events.iter().map(|event| report(event, 1, MessageStatus::Sent)).collect();
    reports.sort_by(|one, other| one.external_id.cmp(&other.external_id));
    let (one, two) = (scene.harness.reports().await, scene.harness.reports().await);
    let policy = policy(&[MessageStatus::Sent]);
    let (one, two) = tokio::join!(one.take_in(&reports, &policy), two.take_in(&reports, &policy));
    let (one, two) = (one.expect("take in"), two.expect("take in"));
    assert_eq!((one.recorded + two.recorded, one.repeated + two.repeated), (20, 20));
    assert_eq!((one.resolved + two.resolved, one.enqueued + two.enqueued), (20, 20));
    assert_eq!(scene.pending().await.len(), 20);
}
