//! SIGKILL, again and again, under load.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use postbox_testkit::faults::Dice;
use postbox_testkit::ledger::{Entry, Ledger, Moment};
use postbox_testkit::postgres::PgCluster;
use postbox_testkit::process::eventually;
use uuid::Uuid;

use crate::producer::{self, Producing};
use crate::record::Record;
use crate::role::Role;
use crate::scene::{Scene, Timing};

const KILLS: usize = 20;
const EVENTS: usize = 10_000;
const AGGREGATES: usize = 500;
const PRODUCERS: usize = 4;

const TIMING: Timing = Timing {
    lease: Duration::from_millis(1_500),
    attempt: Duration::from_millis(900),
    retry: Duration::from_millis(50),
};

/// What was true right after a kill, when nothing of the dead relay was under way any more.
struct Kill {
    /// Lines in the receiver's record.
    lines: usize,
    /// Events whose delivery was recorded in the database.
    settled: HashSet<Uuid>,
}

#[test]
fn twenty_kills_lose_nothing_and_reorder_nothing() {
    let seed = seed();
    println!("POSTBOX_TEST_SEED={seed}");
    // Made before the receiver is: its record is in a folder of its own.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let mut receiver = Role::Receiver { record: path.clone(), seed }.start();
    let scene = Scene::set(PgCluster::shared(), &receiver.told("receiver "), TIMING);
    let mut record = Record::follow(path);
    scene.sql(producer::TABLE);
    let mut producers: Vec<_> = (0..PRODUCERS)
        .map(|number| {
            let producing = Producing {
                database_url: scene.url(),
                seed: seed + number as u64,
                events: EVENTS / PRODUCERS,
                aggregates: AGGREGATES,
            };
            Role::Producer(producing).start()
        })
        .collect();

    let kills = kill_relays(&scene, &mut record, &mut Dice::new(seed));
    let relay = scene.relay(&[]);
    for producer in &mut producers {
        assert!(producer.ended().success(), "a producer failed");
    }
    scene.drained();
    record.quiet();
    relay.terminate();

    judge(&scene, &record.entries(), &kills);
    both_sides_agree(&scene, &record.entries());
}

/// The same by `postbox reconcile`: what the receiver confirmed, in its order, against what the outbox says.
fn both_sides_agree(scene: &Scene<'_>, entries: &[Entry]) {
    let confirmed: Vec<Uuid> =
        entries.iter().filter(|entry| entry.status == Some(200)).map(|entry| entry.event_id).collect();
    let comparison = scene.reconcile(&confirmed);
    let count = |kind: &str| comparison[kind]["count"].as_u64().unwrap();
    assert_eq!((count("missing"), count("extra"), count("out_of_order")), (0, 0, 0), "{comparison:#}");
    assert_eq!(
        (comparison["delivered"].as_u64(), comparison["received"].as_u64()),
        (Some(10_000), Some(10_000))
    );
    let mut times: HashMap<Uuid, usize> = HashMap::new();
    for event in confirmed {
        *times.entry(event).or_default() += 1;
    }
    let repeated = times.values().filter(|&&times| times > 1).count();
    assert_eq!(count("duplicated"), repeated as u64);
}

/// Chosen anew for each run, unless the variable repeats an earlier one.
fn seed() -> u64 {
    match std::env::var("POSTBOX_TEST_SEED") {
        Ok(seed) => seed.parse().expect("POSTBOX_TEST_SEED is a number"),
        Err(_) => Uuid::now_v7().as_u64_pair().1 >> 16,
    }
}

/// Starts and kills relays, at moments of which some are counted in requests and some in time.
fn kill_relays(scene: &Scene<'_>, record: &mut Record, dice: &mut Dice) -> Vec<Kill> {
    let mut kills = Vec::new();
    for _ in 0..KILLS {
        let mut relay = scene.relay(&[]);
        if dice.happens(75) {
            let lines = record.lines() + 1 + dice.below(1_000);
            eventually("requests arrive", || record.lines() >= lines);
            std::thread::sleep(Duration::from_micros(dice.below(20_000) as u64));
        } else {
            // Any moment of a relay's life, the time included in which it waits for its lease.
            std::thread::sleep(Duration::from_millis(dice.below(2_000) as u64));
        }
        relay.kill();
        // What the dead relay had sent to the database may still be carried out.
        eventually("the dead relay's sessions are gone", || {
            scene.number(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'postbox'",
            ) == 0
        });
        let lines = record.quiet();
        let settled = uuids(&scene.sql(
            "SELECT event_id FROM outbox JOIN outbox_delivery ON outbox_id = id WHERE state = 'delivered'",
        ));
        kills.push(Kill { lines, settled });
    }
    kills
}

fn uuids(text: &str) -> HashSet<Uuid> {
    text.lines().map(|line| line.trim().parse().unwrap()).collect()
}

/// P1 to P5, by what the receiver wrote down.
fn judge(scene: &Scene<'_>, entries: &[Entry], kills: &[Kill]) {
    let committed = uuids(&scene.sql("SELECT event_id FROM change"));
    let ledger = Ledger::of(entries, &committed, &HashSet::new());
    let under_load = kills.iter().filter(|kill| kill.settled.len() < EVENTS).count();
    let in_doubt: usize = kills.iter().map(|kill| in_doubt(entries, kill).len()).sum();
    println!(
        "{} kills, {under_load} of them under load; {} requests; {} events delivered, {} confirmed again of {in_doubt} in doubt",
        kills.len(),
        ledger.requests,
        ledger.delivered,
        ledger.repeated
    );
    assert_eq!(committed.len(), EVENTS);
    assert_eq!(under_load, KILLS, "the load was over before the last kill");
    assert_eq!(ledger.lost, Vec::<Uuid>::new(), "lost");
    assert_eq!(ledger.phantoms, Vec::<Uuid>::new(), "phantoms");
    assert_eq!(ledger.order_violations, [], "order violations");
    assert_eq!(ledger.delivered, EVENTS);
    attempts_are_honest(scene, entries);
    repetitions_are_explained(entries, kills);
}

/// Confirmed to the relay that was killed, or received from it, and not recorded by it.
fn in_doubt(entries: &[Entry], kill: &Kill) -> HashSet<Uuid> {
    let confirmed = entries[..kill.lines].iter().filter(|entry| entry.status == Some(200));
    confirmed.map(|entry| entry.event_id).filter(|event| !kill.settled.contains(event)).collect()
}

/// P5: an event is confirmed again at most once for each kill that left it in doubt.
fn repetitions_are_explained(entries: &[Entry], kills: &[Kill]) {
    let mut allowed: HashMap<Uuid, usize> = HashMap::new();
    for kill in kills {
        for event in in_doubt(entries, kill) {
            *allowed.entry(event).or_default() += 1;
        }
    }
    let mut confirmed: HashMap<Uuid, usize> = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.status == Some(200)) {
        *confirmed.entry(entry.event_id).or_default() += 1;
    }
    for (event, times) in confirmed {
        let allowed = 1 + allowed.get(&event).copied().unwrap_or(0);
        assert!(times <= allowed, "{event} was confirmed {times} times, of which {allowed} are explained");
    }
}

/// P4: nothing was given up, and no attempt was counted that was not made.
fn attempts_are_honest(scene: &Scene<'_>, entries: &[Entry]) {
    let mut requests: HashMap<Uuid, usize> = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.moment == Moment::Arrival) {
        *requests.entry(entry.event_id).or_default() += 1;
    }
    assert_eq!(scene.number("SELECT count(*) FROM outbox_delivery WHERE state <> 'delivered'"), 0);
    let counted = scene.sql("SELECT event_id, attempts FROM outbox JOIN outbox_delivery ON outbox_id = id");
    for line in counted.lines() {
        let (event, attempts) = line.split_once('|').unwrap();
        let attempts: usize = attempts.parse().unwrap();
        let made = requests.get(&event.parse().unwrap()).copied().unwrap_or(0);
        assert!(
            (1..=made).contains(&attempts),
            "{event}: {attempts} attempts counted, {made} requests received"
        );
    }
}
