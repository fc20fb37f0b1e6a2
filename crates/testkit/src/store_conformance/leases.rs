//! Shards: who owns them, for how long, and how they change hands.

use std::collections::{BTreeMap, BTreeSet};

use postbox_core::event::{SHARD_COUNT, Shard};
use postbox_core::lease::{Heartbeat, LeaseAnswer, RelayId, Term, fair_share};
use postbox_core::store::Store;
use uuid::Uuid;

use super::harness::StoreHarness;
use super::scene::{HOUR, heartbeat, held, join, renew};

/// The first relay is alone and is given every shard once.
pub async fn the_first_relay_is_given_every_shard(harness: &dyn StoreHarness) {
    let store = harness.store().await;
    let LeaseAnswer::Held { terms, live } = join(&*store, Uuid::now_v7()).await else { panic!("evicted") };
    assert_eq!(live, 1);
    assert_eq!(shards(&terms).len(), usize::from(SHARD_COUNT));
    assert_eq!(terms.len(), usize::from(SHARD_COUNT));
}

/// Renewing changes no term.
pub async fn renewing_changes_no_term(harness: &dyn StoreHarness) {
    let store = harness.store().await;
    let relay = Uuid::now_v7();
    let before = sorted(held(join(&*store, relay).await));
    harness.pass_time(HOUR / 2).await;
    assert_eq!(sorted(held(renew(&*store, relay).await)), before);
    // Without the renewal the lease would have run out now.
    harness.pass_time(HOUR / 2 + HOUR / 4).await;
    let other = Uuid::now_v7();
    assert!(held(join(&*store, other).await).is_empty(), "nothing is free");
    assert_eq!(sorted(held(renew(&*store, relay).await)), before);
}

/// A second relay gets nothing while the first owns everything, and its fair share once the first gives some back.
pub async fn a_second_relay_gets_its_fair_share_when_the_first_gives_it_back(harness: &dyn StoreHarness) {
    let (first_store, second_store) = (harness.store().await, harness.store().await);
    let (first, second) = (Uuid::now_v7(), Uuid::now_v7());
    let terms = sorted(held(join(&*first_store, first).await));
    assert_eq!(join(&*second_store, second).await, LeaseAnswer::Held { terms: Vec::new(), live: 2 });
    let LeaseAnswer::Held { live, .. } = renew(&*first_store, first).await else { panic!("evicted") };
    assert_eq!(live, 2);

    let share = fair_share(live);
    first_store.hand_back(first, &terms[share..]).await.expect("hand_back");
    let taken = held(renew(&*second_store, second).await);
    assert_eq!(shards(&taken), shards(&terms[share..]));
    for term in &taken {
        let before = terms.iter().find(|before| before.shard == term.shard).expect("a shard of the first");
        assert!(term.epoch > before.epoch, "{term:?} after {before:?}");
    }
    assert_eq!(sorted(held(renew(&*first_store, first).await)), terms[..share]);
}

/// Nobody takes more than the fair share, even when more is free.
pub async fn nobody_takes_more_than_the_fair_share(harness: &dyn StoreHarness) {
    let store = harness.store().await;
    let (first, second, third) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    let terms = held(join(&*store, first).await);
    join(&*store, second).await;
    join(&*store, third).await;
    store.hand_back(first, &terms).await.expect("hand_back");
    let share = fair_share(3);
    for relay in [second, third, first] {
        assert!(held(renew(&*store, relay).await).len() <= share);
    }
}

/// A relay whose lease has run out is evicted by the next heartbeat of another; its shards go over in new terms.
pub async fn a_silent_relay_loses_its_shards_to_the_next(harness: &dyn StoreHarness) {
    let store = harness.store().await;
    let (silent, next) = (Uuid::now_v7(), Uuid::now_v7());
    let before = held(join(&*store, silent).await);
    harness.pass_time(HOUR - HOUR / 60).await;
    assert!(held(join(&*store, next).await).is_empty(), "the lease has a minute left");
    harness.pass_time(HOUR / 30).await;
    let LeaseAnswer::Held { terms, live } = renew(&*store, next).await else { panic!("evicted") };
    assert_eq!((live, terms.len()), (1, usize::from(SHARD_COUNT)));
    assert_epochs_rose(&before, &terms);
    assert_eq!(renew(&*store, silent).await, LeaseAnswer::Evicted);
    assert_eq!(renew(&*store, silent).await, LeaseAnswer::Evicted, "and stays so");
}

/// A relay that leaves frees everything at once.
pub async fn a_relay_that_leaves_frees_everything(harness: &dyn StoreHarness) {
    let store = harness.store().await;
    let (first, second) = (Uuid::now_v7(), Uuid::now_v7());
    let before = held(join(&*store, first).await);
    store.leave(first).await.expect("leave");
    let LeaseAnswer::Held { terms, live } = join(&*store, second).await else { panic!("evicted") };
    assert_eq!((live, terms.len()), (1, usize::from(SHARD_COUNT)));
    assert_epochs_rose(&before, &terms);
    store.leave(first).await.expect("leaving twice is no error");
    assert_eq!(held(renew(&*store, second).await).len(), usize::from(SHARD_COUNT));
}

/// Giving back what belongs to another, or an earlier term, changes nothing.
pub async fn only_own_current_terms_can_be_given_back(harness: &dyn StoreHarness) {
    let store = harness.store().await;
    let (first, second) = (Uuid::now_v7(), Uuid::now_v7());
    let terms = sorted(held(join(&*store, first).await));
    join(&*store, second).await;
    store.hand_back(second, &terms).await.expect("hand_back");
    let earlier: Vec<Term> = terms.iter().map(|term| Term { epoch: term.epoch - 1, ..*term }).collect();
    store.hand_back(first, &earlier).await.expect("hand_back");
    assert_eq!(sorted(held(renew(&*store, first).await)), terms);
}

/// A relay that shuts down keeps what it has and is given nothing more.
pub async fn a_relay_that_does_not_accept_is_given_nothing_more(harness: &dyn StoreHarness) {
    let store = harness.store().await;
    let relay = Uuid::now_v7();
    let terms = sorted(held(join(&*store, relay).await));
    store.hand_back(relay, &terms[..10]).await.expect("hand_back");
    let closing = Heartbeat { accepting: false, ..heartbeat(relay) };
    let kept = held(store.heartbeat(&closing, true).await.expect("heartbeat"));
    assert_eq!(sorted(kept), terms[10..]);
    let idle = Heartbeat { accepting: false, ..heartbeat(Uuid::now_v7()) };
    assert!(held(store.heartbeat(&idle, false).await.expect("heartbeat")).is_empty());
}

/// Relays that join, renew and give back at the same time never own a shard together, and own all in the end.
pub async fn no_shard_has_two_owners(harness: &dyn StoreHarness) {
    let mut relays = Vec::new();
    for _ in 0..4 {
        relays.push((harness.store().await, Uuid::now_v7()));
    }
    let joins = relays.iter().map(|(store, relay)| join(&**store, *relay));
    futures_util::future::join_all(joins).await;
    for _ in 0..6 {
        let rounds = relays.iter().map(|(store, relay)| round(&**store, *relay));
        futures_util::future::join_all(rounds).await;
    }
    let mut owners: BTreeMap<Shard, RelayId> = BTreeMap::new();
    for (store, relay) in &relays {
        let terms = held(renew(&**store, *relay).await);
        assert!(terms.len() <= fair_share(4), "{} shards", terms.len());
        for term in terms {
            assert_eq!(owners.insert(term.shard, *relay), None, "shard {} has two owners", term.shard);
        }
    }
    assert_eq!(owners.len(), usize::from(SHARD_COUNT));
}

/// One heartbeat, giving back what is beyond the fair share.
async fn round(store: &dyn Store, relay: RelayId) {
    let LeaseAnswer::Held { terms, live } = renew(store, relay).await else { panic!("evicted") };
    let terms = sorted(terms);
    let beyond = terms.get(fair_share(live)..).unwrap_or_default();
    store.hand_back(relay, beyond).await.expect("hand_back");
}

/// What a relay tells of itself is what the status shows.
pub async fn the_status_shows_what_relays_tell_of_themselves(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    let relay = Uuid::now_v7();
    let told = Heartbeat { label: "host's:42".to_owned(), in_flight: 7, ..heartbeat(relay) };
    store.heartbeat(&told, false).await.expect("heartbeat");
    let status = operations.status().await.expect("status");
    assert_eq!(status.in_flight, 7);
    let [shown] = status.relays.as_slice() else { panic!("one relay: {:?}", status.relays) };
    assert_eq!((shown.relay, shown.label.as_str(), shown.in_flight), (relay, "host's:42", 7));
    assert_eq!((shown.shards, shown.epoch), (u32::from(SHARD_COUNT), Some(1)));
    assert!(shown.lease_seconds > 3_500.0 && shown.lease_seconds <= 3_600.0, "{}", shown.lease_seconds);
    assert!(shown.started_at <= status.now);
    store.leave(relay).await.expect("leave");
    assert!(operations.status().await.expect("status").relays.is_empty());
}

/// Every shard is listed with its owner and the epoch that the owner's terms have; a free one has no owner.
pub async fn the_shards_are_listed_with_their_owners(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    let listed = async || operations.shards().await.expect("shards");
    let fresh = listed().await;
    assert!(fresh.iter().map(|shard| shard.shard).eq(0..SHARD_COUNT), "in order of their numbers");
    assert!(fresh.iter().all(|shard| shard.owner.is_none()));

    let relay = Uuid::now_v7();
    let told = Heartbeat { label: "host:42".to_owned(), ..heartbeat(relay) };
    let terms = sorted(held(store.heartbeat(&told, false).await.expect("heartbeat")));
    store.hand_back(relay, &terms[..3]).await.expect("hand_back");
    harness.pass_time(HOUR / 2).await;
    for (shard, term) in listed().await.iter().zip(&terms) {
        assert_eq!((shard.shard, shard.epoch), (term.shard, term.epoch));
        assert_eq!(shard.owner.is_none(), term.shard < 3, "{shard:?}");
        if let Some(owner) = &shard.owner {
            assert_eq!((owner.relay, owner.label.as_str()), (relay, "host:42"));
            assert!((1_700.0..=1_900.0).contains(&owner.held_seconds), "{owner:?}");
            assert!((1_700.0..=1_900.0).contains(&owner.lease_seconds), "{owner:?}");
        }
    }
    harness.pass_time(HOUR).await;
    let late = listed().await;
    let owner = late[3].owner.as_ref().expect("nobody has evicted it yet");
    assert!(owner.lease_seconds < 0.0, "{owner:?}");
}

fn assert_epochs_rose(before: &[Term], after: &[Term]) {
    let before: BTreeMap<Shard, i64> = before.iter().map(|term| (term.shard, term.epoch)).collect();
    for term in after {
        assert!(term.epoch > before[&term.shard], "{term:?} after epoch {}", before[&term.shard]);
    }
}

fn shards(terms: &[Term]) -> BTreeSet<Shard> {
    terms.iter().map(|term| term.shard).collect()
}

fn sorted(mut terms: Vec<Term>) -> Vec<Term> {
    terms.sort();
    terms
}
