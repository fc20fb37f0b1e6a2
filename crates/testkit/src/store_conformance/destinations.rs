//! Destinations kept as data: what relays read of them, the operator's calls, and plain SQL.

use std::time::Duration;

use postbox_core::delivery::DeliveryState::{Dead, Delivered, Held, Retry, Waiting};
use postbox_core::endpoint::{Blocked, BlockedDestination, Endpoint, EndpointSet, MAX_SECRETS, Settings};
use postbox_core::lease::Heartbeat;
use postbox_core::operations::Operations;
use postbox_core::store::{Store, StoreErrorKind};
use uuid::Uuid;

use super::harness::StoreHarness;
use super::scene::{AUDIT, BILLING, HOUR, Scene, heartbeat, record};

const ACME: &str = r#"{"url": "https://acme.example/hooks", "events": ["order.*"], "tenant": "acme"}"#;
const GLOBEX: &str = r#"{"url": "https://globex.example/hooks"}"#;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The set as a relay that knows nothing reads it.
async fn read(store: &dyn Store) -> EndpointSet {
    store.endpoints(-1).await.expect("endpoints").expect("a version below 0 is never current")
}

async fn only_endpoint(store: &dyn Store) -> Endpoint {
    let EndpointSet { mut endpoints, .. } = read(store).await;
    assert_eq!(endpoints.len(), 1, "{endpoints:?}");
    endpoints.remove(0)
}

fn texts(endpoint: &Endpoint) -> Vec<&str> {
    endpoint.secrets.iter().map(|secret| secret.text.as_str()).collect()
}

/// Whoever names the current version is told nothing.
pub async fn what_is_known_already_is_not_read_again(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    let empty = read(&*store).await;
    assert_eq!(empty.endpoints, []);
    assert_eq!(store.endpoints(empty.version).await.expect("endpoints"), None);
    assert!(operations.add_endpoint("acme", ACME, None).await.expect("add"));
    let news = store.endpoints(empty.version).await.expect("endpoints").expect("news");
    assert_eq!((news.version > empty.version, news.endpoints.len()), (true, 1));
    assert_eq!(store.endpoints(news.version).await.expect("endpoints"), None);
}

/// What was added is what is read, in order of name.
pub async fn an_endpoint_is_read_as_it_was_added(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(operations.add_endpoint("globex", GLOBEX, None).await.expect("add"));
    assert!(operations.add_endpoint("acme", ACME, Some(SECRET)).await.expect("add"));
    let set = read(&*store).await;
    let [acme, globex] = set.endpoints.as_slice() else { panic!("two endpoints: {set:?}") };
    assert_eq!((&*acme.name, &*globex.name), ("acme", "globex"));
    assert_eq!(acme.settings, Settings::read(Some(ACME)));
    assert!(
        matches!(&acme.settings, Settings::Usable(settings) if settings.url == "https://acme.example/hooks")
    );
    assert_eq!((texts(acme), texts(globex)), (vec![SECRET], vec![]));
    assert_eq!((&acme.disabled, &globex.disabled), (&None, &None));

    let listed = operations.list_endpoints().await.expect("list");
    assert_eq!(listed.iter().map(|record| record.name.as_str()).collect::<Vec<_>>(), ["acme", "globex"]);
    assert_eq!(listed[0].settings.as_deref(), Some(ACME));
    assert_eq!((listed[0].secrets.len(), listed[1].secrets.len()), (1, 0));
    assert!(listed[0].updated_at >= listed[0].created_at);
    let found = operations.find_endpoint("acme").await.expect("find");
    assert_eq!(found.as_ref(), Some(&listed[0]));
    assert_eq!(operations.find_endpoint("nobody").await.expect("find"), None);
}

/// Everything an operator can do to an endpoint is news to a relay.
pub async fn every_change_raises_the_version(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    let mut known = read(&*store).await.version;
    for step in ["add", "change", "disable", "enable", "secret", "remove", "gone"] {
        match step {
            "add" => assert!(operations.add_endpoint("acme", ACME, None).await.expect(step)),
            "change" => assert!(operations.change_endpoint("acme", ACME, GLOBEX).await.expect(step)),
            "disable" => assert!(operations.switch_endpoint("acme", Some("paid late")).await.expect(step)),
            "enable" => assert!(operations.switch_endpoint("acme", None).await.expect(step)),
            "secret" => assert!(operations.add_secret("acme", SECRET, HOUR).await.expect(step)),
            "remove" => assert!(operations.remove_endpoint("acme").await.expect(step).is_some()),
            _ => store.disable_endpoint("acme", "answered 410").await.expect(step),
        }
        let news = store.endpoints(known).await.expect("endpoints").expect(step);
        assert!(news.version > known, "{step}");
        known = news.version;
        assert_eq!(store.endpoints(known).await.expect("endpoints"), None, "after {step}");
    }
}

/// A relay also learns of what somebody writes with an SQL client.
pub async fn plain_sql_raises_the_version(harness: &dyn StoreHarness) {
    let store = harness.store().await;
    let mut known = read(&*store).await.version;
    for statement in [
        "INSERT INTO outbox_destination (name, settings) VALUES ('acme', '{\"url\": \"https://acme.example/\"}')",
        "UPDATE outbox_destination SET settings = '{\"url\": \"https://acme.example/v2\"}'",
        "INSERT INTO outbox_destination_secret (destination, secret) VALUES ('acme', 'whsec_AAAA')",
        "UPDATE outbox_destination_secret SET expires_at = created_at",
        "DELETE FROM outbox_destination_secret",
        "UPDATE outbox_destination SET disabled_at = created_at",
        "UPDATE outbox_destination SET name = 'acme-2'",
        "DELETE FROM outbox_destination",
    ] {
        harness.sql(statement).await;
        let news = store.endpoints(known).await.expect("endpoints");
        known = news.unwrap_or_else(|| panic!("no news after {statement}")).version;
    }
    harness.sql("INSERT INTO outbox_destination (name, settings) VALUES ('acme', '{\"url\": \"x\"}')").await;
    harness.sql("UPDATE outbox_destination SET disabled_at = created_at").await;
    assert!(only_endpoint(&*store).await.disabled.is_some(), "a reason is not needed");
}

/// What one row says wrongly keeps no other from being read.
pub async fn settings_that_cannot_be_used_spoil_only_their_own_endpoint(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(operations.add_endpoint("globex", GLOBEX, None).await.expect("add"));
    harness
        .sql("INSERT INTO outbox_destination (name, settings) VALUES ('acme', '{\"url\": 7, \"tenant\": \"acme\"}')")
        .await;
    let set = read(&*store).await;
    let Settings::Unusable { reason, route } = &set.endpoints[0].settings else { panic!("{set:?}") };
    assert!(reason.contains("`url` must be a text"), "{reason}");
    assert_eq!(route.as_ref().and_then(|route| route.tenant.as_deref()), Some("acme"));
    assert!(matches!(set.endpoints[1].settings, Settings::Usable(_)));
}

/// A second endpoint of one name is not added, and leaves the first as it is.
pub async fn a_name_is_given_once(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(operations.add_endpoint("acme", ACME, None).await.expect("add"));
    assert!(!operations.add_endpoint("acme", GLOBEX, Some(SECRET)).await.expect("add"));
    let endpoint = only_endpoint(&*store).await;
    assert_eq!((&endpoint.settings, texts(&endpoint)), (&Settings::read(Some(ACME)), vec![]));
}

/// Two people who change one endpoint at the same time do not overwrite each other.
pub async fn settings_are_replaced_only_as_they_were_seen(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(operations.add_endpoint("acme", ACME, None).await.expect("add"));
    assert!(operations.change_endpoint("acme", ACME, GLOBEX).await.expect("change"));
    assert!(!operations.change_endpoint("acme", ACME, "{\"url\": \"x\"}").await.expect("change"));
    assert!(!operations.change_endpoint("nobody", ACME, GLOBEX).await.expect("change"));
    assert_eq!(only_endpoint(&*store).await.settings, Settings::read(Some(GLOBEX)));
}

/// A destination of the configuration file can be switched off; switched on again it leaves nothing behind.
pub async fn a_switch_needs_no_endpoint(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(!operations.switch_endpoint(BILLING, None).await.expect("switch"), "it is on");
    assert!(operations.switch_endpoint(BILLING, Some("maintenance")).await.expect("switch"));
    let switch = only_endpoint(&*store).await;
    assert_eq!((switch.settings, switch.disabled.as_deref()), (Settings::Switch, Some("maintenance")));
    assert!(operations.switch_endpoint(BILLING, None).await.expect("switch"));
    assert_eq!(read(&*store).await.endpoints, []);
}

/// Whoever switches off what is off already, changes nothing; on again, everything of the endpoint is there.
pub async fn an_endpoint_that_is_off_keeps_its_first_reason(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(operations.add_endpoint("acme", ACME, Some(SECRET)).await.expect("add"));
    store.disable_endpoint("acme", "answered 410 Gone").await.expect("disable");
    let version = read(&*store).await.version;
    assert!(!operations.switch_endpoint("acme", Some("maintenance")).await.expect("switch"));
    store.disable_endpoint("acme", "answered 410 again").await.expect("disable");
    assert_eq!(read(&*store).await.version, version, "nothing has changed");
    assert_eq!(only_endpoint(&*store).await.disabled.as_deref(), Some("answered 410 Gone"));
    let shown = operations.find_endpoint("acme").await.expect("find").expect("it exists");
    assert!(shown.disabled_at.is_some());
    assert_eq!(shown.disabled_reason.as_deref(), Some("answered 410 Gone"));
    assert!(operations.switch_endpoint("acme", None).await.expect("switch"));
    let endpoint = only_endpoint(&*store).await;
    assert_eq!((endpoint.disabled.as_ref(), texts(&endpoint)), (None, vec![SECRET]));
}

/// During a rotation both secrets are in use, the newest first; then the old one is gone.
pub async fn old_secrets_sign_beside_the_new_one_until_they_expire(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(!operations.add_secret("acme", "whsec_bmV3", HOUR).await.expect("there is no endpoint yet"));
    assert!(operations.add_endpoint("acme", ACME, Some(SECRET)).await.expect("add"));
    assert!(operations.add_secret("acme", "whsec_bmV3", HOUR).await.expect("secret"));
    let endpoint = only_endpoint(&*store).await;
    assert_eq!(texts(&endpoint), ["whsec_bmV3", SECRET]);
    assert_eq!(endpoint.secrets[0].expires_at, None);
    assert!(endpoint.secrets[1].expires_at.is_some());
    harness.pass_time(HOUR + Duration::from_secs(1)).await;
    assert_eq!(texts(&only_endpoint(&*store).await), ["whsec_bmV3"]);
    let shown = operations.find_endpoint("acme").await.expect("find").expect("it exists");
    assert_eq!(shown.secrets.len(), 1);
    assert!(operations.add_secret("acme", SECRET, Duration::ZERO).await.expect("secret"));
    let endpoint = only_endpoint(&*store).await;
    assert_eq!((texts(&endpoint), endpoint.secrets_expired), (vec![SECRET], false), "nothing is kept");
    harness.sql("UPDATE outbox_destination_secret SET expires_at = created_at").await;
    harness.pass_time(Duration::from_secs(1)).await;
    let endpoint = only_endpoint(&*store).await;
    assert_eq!((texts(&endpoint), endpoint.secrets_expired), (vec![], true), "all have expired");
}

/// A secret too many is refused and changes nothing; replacing all of them at once always works.
pub async fn no_more_secrets_than_fit_into_a_request(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(operations.add_endpoint("acme", ACME, Some(SECRET)).await.expect("add"));
    for _ in 1..MAX_SECRETS {
        assert!(operations.add_secret("acme", "whsec_bmV3", HOUR).await.expect("secret"));
    }
    let refused = operations.add_secret("acme", "whsec_ZW1wdHk=", HOUR).await.expect_err("one too many");
    assert_eq!(refused.kind, StoreErrorKind::Input);
    assert!(!refused.message.contains("whsec"), "{refused}");
    assert_eq!(only_endpoint(&*store).await.secrets.len(), MAX_SECRETS);
    assert!(operations.add_secret("acme", SECRET, Duration::ZERO).await.expect("secret"));
    assert_eq!(texts(&only_endpoint(&*store).await), [SECRET]);
}

/// Added again, an endpoint does not find secrets of its former life.
pub async fn a_removed_endpoint_takes_its_secrets_along(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    assert!(operations.add_endpoint("acme", ACME, Some(SECRET)).await.expect("add"));
    let gone_since = operations.remove_endpoint("acme").await.expect("remove").expect("it existed");
    let set = read(&*store).await;
    assert_eq!((set.version, set.endpoints), (gone_since, vec![]));
    assert_eq!(operations.remove_endpoint("acme").await.expect("remove"), None);
    assert!(operations.add_endpoint("acme", ACME, None).await.expect("add"));
    assert_eq!(texts(&only_endpoint(&*store).await), Vec::<&str>::new());
}

/// Everything unfinished or dead of it, in bounded batches, and nothing else.
pub async fn what_is_kept_for_a_removed_destination_can_be_discarded(harness: &dyn StoreHarness) {
    let scene = Scene::new(harness).await;
    let events = scene.commit(&["1", "1", "2", "3", "4"]).await;
    let states = [Retry, Waiting, Held, Dead, Delivered];
    let to =
        |destination| events.iter().zip(states).map(move |(event, state)| record(event, destination, state));
    scene.dispatch(to(BILLING).chain(to(AUDIT)).collect()).await;
    let discard = async || {
        scene.operations.discard_removed(BILLING, "removed by an operator", 3).await.expect("discard_removed")
    };
    assert_eq!((discard().await, discard().await, discard().await), (3, 1, 0));
    for (event, state) in events.iter().zip(states) {
        let story = scene.story(event).await;
        let of = |name| story.deliveries.iter().find(|row| row.destination == name).expect("both have a row");
        assert_eq!(of(AUDIT).state, state.as_str());
        let (shown, last_error) = (of(BILLING).state.as_str(), of(BILLING).last_error.as_deref());
        if state == Delivered {
            assert_eq!((shown, last_error), ("delivered", None));
        } else {
            assert_eq!((shown, last_error), ("discarded", Some("removed by an operator")));
        }
    }
    scene.assert_heads().await;
}

/// What a relay says of its destinations with a heartbeat is shown until it says otherwise.
pub async fn the_status_shows_which_destinations_a_relay_works_with(harness: &dyn StoreHarness) {
    let (store, operations) = (harness.store().await, harness.operations().await);
    let relay = Uuid::now_v7();
    let shown = async |operations: &dyn Operations| {
        let relays = operations.status().await.expect("status").relays;
        (relays[0].destinations_version, relays[0].blocked.clone())
    };
    store.heartbeat(&heartbeat(relay), false).await.expect("heartbeat");
    assert_eq!(shown(&*operations).await, (0, Blocked::default()));
    let blocked = Blocked::of(vec![BlockedDestination {
        destination: "acme".into(),
        reason: "disabled: it's \"late\"".into(),
    }]);
    let told = Heartbeat { destinations_version: 7, blocked: blocked.clone(), ..heartbeat(relay) };
    store.heartbeat(&told, true).await.expect("heartbeat");
    assert_eq!(shown(&*operations).await, (7, blocked));
    let well = Heartbeat { destinations_version: 8, ..heartbeat(relay) };
    store.heartbeat(&well, true).await.expect("heartbeat");
    assert_eq!(shown(&*operations).await, (8, Blocked::default()));
}
