use super::*;

const LONGEST: Duration = Duration::from_secs(13);

/// Refuses every endpoint whose URL says so.
#[derive(Debug)]
struct Factory;

impl Endpoints for Factory {
    fn sink(&self, _endpoint: &Endpoint, settings: &EndpointSettings) -> Result<Arc<dyn Sink>, String> {
        if settings.url.contains("bad") { Err("`url` is bad".into()) } else { Ok(Arc::new(Nowhere)) }
    }
}

fn configured(name: &str) -> Binding {
    Binding { destination: Destination::new(name, Route::default()), sink: Arc::new(Nowhere) }
}

fn roster(names: &[&str]) -> Roster {
    Roster::new(names.iter().map(|name| configured(name)).collect(), Some(Arc::new(Factory)), LONGEST)
}

fn endpoint(name: &str, settings: &str) -> Endpoint {
    Endpoint {
        name: name.into(),
        settings: Settings::read(Some(settings)),
        secrets: Vec::new(),
        secrets_expired: false,
        disabled: None,
    }
}

fn set(version: i64, endpoints: Vec<Endpoint>) -> EndpointSet {
    EndpointSet { version, endpoints }
}

fn names(list: &[Destination]) -> Vec<&str> {
    list.iter().map(|destination| &*destination.name).collect()
}

const GOOD: &str = r#"{"url": "https://acme.example/"}"#;

#[test]
fn a_place_keeps_its_number_whatever_comes_and_goes() {
    let mut roster = roster(&["billing"]);
    let list = roster.take_over(set(1, vec![endpoint("m", GOOD), endpoint("z", GOOD)]));
    assert_eq!(names(&list), ["billing", "m", "z"]);
    let list = roster.take_over(set(2, vec![endpoint("a", GOOD), endpoint("z", GOOD)]));
    assert_eq!(names(&list), ["billing", "a", "z"]);
    let list = roster.take_over(set(3, vec![endpoint("m", GOOD)]));
    assert_eq!((names(&list), roster.version()), (vec!["billing", "m"], 3));
    let places: Vec<&str> = (0..4).map(|number| &*roster.place(number).name).collect();
    assert_eq!(places, ["billing", "m", "z", "a"]);
}

#[test]
fn the_configuration_wins_over_an_endpoint_of_the_same_name() {
    let mut roster = roster(&["billing"]);
    let mut twin = endpoint("billing", r#"{"url": "https://other.example/", "events": ["x"]}"#);
    twin.disabled = Some("paid late".into());
    let list = roster.take_over(set(1, vec![twin]));
    assert_eq!((list.len(), &list[0].route), (1, &Route::default()));
    assert_eq!(list[0].disabled.as_deref(), Some("paid late"), "its switch is obeyed");
    assert!(roster.blocked(&[]).destinations[0].reason.contains("not used"));
}

#[test]
fn a_switch_turns_a_configured_destination_off_and_on() {
    let mut roster = roster(&["billing"]);
    let switch = Endpoint {
        settings: Settings::Switch,
        disabled: Some("maintenance".into()),
        ..endpoint("billing", GOOD)
    };
    let list = roster.take_over(set(1, vec![switch]));
    assert_eq!(list[0].disabled.as_deref(), Some("maintenance"));
    assert_eq!(roster.take_over(set(2, Vec::new()))[0].disabled, None);
}

#[test]
fn an_endpoint_without_a_sink_keeps_its_events_and_troubles_no_other() {
    let mut roster = roster(&[]);
    let list = roster.take_over(set(
        1,
        vec![
            endpoint("bad", r#"{"url": "https://bad.example/", "tenant": "acme"}"#),
            endpoint("fine", GOOD),
            Endpoint { secrets_expired: true, ..endpoint("late", GOOD) },
            endpoint("slow", r#"{"url": "https://acme.example/", "timeout": "1m"}"#),
            endpoint("unclear", r#"{"url": "https://acme.example/", "tennant": "acme"}"#),
        ],
    ));
    assert_eq!(names(&list), ["bad", "fine", "late", "slow"]);
    assert_eq!(list[0].route.tenant.as_deref(), Some("acme"));
    let off: Vec<bool> = list.iter().map(|destination| destination.disabled.is_some()).collect();
    assert_eq!(off, [true, false, true, true]);
    // What the engine says of them is not said twice.
    let told =
        roster.blocked(&[("bad".into(), "disabled: …".into()), ("fine".into(), "breaker open".into())]);
    let told: Vec<(&str, &str)> =
        told.destinations.iter().map(|blocked| (&*blocked.destination, &*blocked.reason)).collect();
    assert_eq!(told.len(), 5);
    for ((name, reason), expected) in
        told.iter().zip(["`url` is bad", "breaker open", "expired", "lease", "`tennant`"])
    {
        assert!(reason.contains(expected), "{name}: {reason}");
    }
}

#[test]
fn a_route_that_became_unclear_stays_as_it_was() {
    let mut roster = roster(&[]);
    roster.take_over(set(1, vec![endpoint("acme", r#"{"url": "https://acme.example/", "tenant": "acme"}"#)]));
    let list = roster.take_over(set(2, vec![endpoint("acme", "{\"tenant\": 7}")]));
    assert_eq!(list[0].route.tenant.as_deref(), Some("acme"));
    assert!(list[0].disabled.is_some());
}

#[test]
fn what_is_gone_stays_off_until_that_is_recorded() {
    let mut roster = roster(&["billing"]);
    let endpoints = || vec![endpoint("acme", GOOD)];
    roster.take_over(set(1, endpoints()));
    assert!(roster.note_gone(&"acme".into(), "answered 410".into()));
    assert!(roster.note_gone(&"billing".into(), "answered 410".into()));
    assert!(!roster.note_gone(&"nobody".into(), "answered 410".into()));
    let list = roster.take_over(set(2, endpoints()));
    assert!(list.iter().all(|destination| destination.disabled.as_deref() == Some("answered 410")));
    while let Some((name, _)) = roster.next_gone() {
        roster.gone_recorded(&name);
    }
    assert!(roster.take_over(set(3, endpoints())).iter().all(|destination| destination.disabled.is_none()));
}
