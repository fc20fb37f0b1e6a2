//! A relay that is killed again and again, and an API that loses requests and answers: who gets how many messages.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postbox_fake_whatsapp::{Incoming, Mood, Plan, Take};
use uuid::Uuid;

use crate::bench::{Bench, eventually};
use crate::whatsapp::{Meta, PHONE};
use crate::whatsapp_webhook::{Produce, Webhook, each_database};

const MESSAGES: usize = 32;

/// Each is a lane: a message that is held delays only those behind it.
const CUSTOMERS: usize = 16;

const KILLS: usize = 5;

/// Events of which a message was taken without a word about it ever after.
type Silent = Arc<Mutex<HashSet<Uuid>>>;

/// Every mood in turn, so that every run has all of them, whatever arrives when.
fn moods(silent: &Silent) -> Plan {
    let silent = Arc::clone(silent);
    Plan::each(move |incoming| {
        let mood = mood(incoming);
        let taken = matches!(mood.take, Take::Accepted | Take::ThenReset | Take::ThenSilence);
        if taken && mood.statuses.is_empty() {
            let mark = incoming.mark.expect("every request of ours is marked");
            silent.lock().unwrap().insert(mark.event_id);
        }
        mood
    })
}

fn mood(incoming: &Incoming) -> Mood {
    let slow = Mood { pause: Duration::from_millis(150), ..Mood::accept() };
    match incoming.arrival % 8 {
        0 => Mood::lose_the_answer(),
        1 => Mood { statuses_first: true, ..slow },
        2 => Mood::lose_the_answer().in_silence(),
        3 => Mood { take: Take::ThenSilence, ..Mood::accept() },
        4 => Mood { take: Take::Reset, ..Mood::accept() }.in_silence(),
        5 => slow.in_silence(),
        6 => slow,
        _ => Mood::accept(),
    }
}

/// Kills one relay after the other while messages go out, and lets the last one finish.
fn chaos(bench: &Bench, meta: &Meta, write: Produce<'_>) -> Vec<Uuid> {
    let events: Vec<Uuid> = (0..MESSAGES).map(|n| write(bench, &(n % CUSTOMERS).to_string())).collect();
    for _ in 0..KILLS {
        let relay = bench.start(&["relay"]);
        let enough = (meta.api.requests() + 3).min(MESSAGES);
        eventually(|| meta.api.requests() >= enough || is_over(bench));
        relay.signal("KILL");
    }
    let relay = bench.start(&["relay"]);
    eventually(|| is_over(bench));
    relay.signal("TERM");
    events
}

/// Nothing is left that a relay would do by itself.
fn is_over(bench: &Bench) -> bool {
    let status = bench.run(&["status", "--json"]).succeeded().json();
    let retries = status["destinations"].as_array().unwrap().iter().map(|found| &found["retry"]["value"]);
    status["pending"]["value"] == 0 && retries.into_iter().all(|count| count == 0)
}

fn state(bench: &Bench, event_id: Uuid) -> String {
    let story = bench.run(&["events", "show", &event_id.to_string(), "--json"]).succeeded().json();
    story["deliveries"][0]["state"].as_str().unwrap().to_owned()
}

fn run(unknown: &str, judge: impl Fn(&Bench, &Meta, &[Uuid], &HashSet<Uuid>)) {
    let more = format!(
        "timeout = \"400ms\"\nevidence_wait = \"2s\"\nunknown = \"{unknown}\"\nretry = {{ delays = [\"50ms\"] }}"
    );
    each_database(|bench, write| {
        let silent = Silent::default();
        let meta = Meta::start(moods(&silent));
        let bench = bench(&meta, &more);
        let config = std::fs::read_to_string(bench.path("postbox.toml")).unwrap();
        bench.write("postbox.toml", &config.replace("[relay]", "[relay]\nlease_ttl = \"1s\""));
        let _webhook = Webhook::start(&bench, &meta, &[]);
        let events = chaos(&bench, &meta, write);
        let silent = silent.lock().unwrap().clone();
        judge(&bench, &meta, &events, &silent);
    });
}

#[test]
fn with_hold_nobody_gets_a_message_twice_however_often_the_relay_is_killed() {
    run("hold", |bench, meta, events, silent| {
        let mut delivered = 0;
        for &event_id in events {
            let copies = meta.api.ledger().copies(PHONE, event_id);
            // What was told of is settled, if need be after it was held.
            if copies > 0 && !silent.contains(&event_id) {
                eventually(|| state(bench, event_id) == "delivered");
            }
            let state = state(bench, event_id);
            assert!(copies <= 1, "{event_id} was sent {copies} times, and is {state}");
            match state.as_str() {
                "delivered" => {
                    delivered += 1;
                    assert_eq!(copies, 1, "{event_id}");
                }
                "held" => {}
                _ => assert_eq!((state.as_str(), copies), ("waiting", 0), "{event_id}"),
            }
        }
        assert!(delivered > 0 && !silent.is_empty());
    });
}

#[test]
fn with_resend_a_message_is_repeated_only_where_nothing_told_of_it() {
    run("resend", |bench, meta, events, silent| {
        let mut repeated = 0;
        for &event_id in events {
            let copies = meta.api.ledger().copies(PHONE, event_id);
            assert_eq!(state(bench, event_id), "delivered");
            assert!(copies >= 1, "{event_id} was lost");
            if copies > 1 {
                repeated += 1;
                assert!(silent.contains(&event_id), "{event_id} was told of and sent {copies} times");
            }
        }
        assert!(repeated > 0, "the silent ones are repeated");
    });
}
