use super::*;

fn usable(text: &str) -> EndpointSettings {
    match Settings::read(Some(text)) {
        Settings::Usable(settings) => *settings,
        other => panic!("{text} gave {other:?}"),
    }
}

#[test]
fn a_url_is_enough() {
    let settings = usable(r#"{"url": "https://acme.example/hooks"}"#);
    assert_eq!(settings.url, "https://acme.example/hooks");
    assert_eq!(settings.route, Route::default());
    assert_eq!(settings.retry, RetryPolicy::default());
    assert_eq!((settings.concurrency, settings.timeout), (DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT));
    assert_eq!(settings.breaker, Some(BreakerPolicy::default()));
    assert_eq!(settings.to_json(), json!({ "url": "https://acme.example/hooks" }));
}

#[test]
fn what_was_written_reads_back() {
    let text = r#"{
        "url": "https://acme.example/hooks", "events": ["order.*"], "aggregate_types": ["order"],
        "match_headers": {"region": "eu"}, "tenant": "acme", "request_headers": {"X-Source": "shop"},
        "envelope": "cloudevents-binary", "source": "/shop", "ordering": "none", "concurrency": 3,
        "rate_limit": {"count": 100, "per": "1s", "burst": 10}, "breaker": false,
        "classes": {"404": "rejected", "409": "delivered"}, "timeout": "5s",
        "retry": {"attempts": 3, "delays": ["1s", "1m30s"], "jitter": 0.5}, "on_exhausted": "hold_lane",
        "description": "Acme's staging"
    }"#;
    let written: Value = serde_json::from_str(text).unwrap();
    assert!(KEYS.iter().all(|&key| written.get(key).is_some()), "a key is missing in this test");
    let settings = usable(text);
    assert_eq!(settings.to_json(), written);
    assert_eq!(usable(&settings.to_json().to_string()), settings);
    let tuned = usable(r#"{"url": "https://a.example/", "breaker": {"consecutive": 3, "rate": 0.5}}"#);
    assert_eq!(usable(&tuned.to_json().to_string()), tuned);
}

#[test]
fn every_mistake_is_told_with_its_key_and_without_its_value() {
    for (text, problem) in [
        ("[]", "not a JSON object"),
        ("{", "not a JSON object"),
        ("{}", "there is no `url`"),
        (r#"{"url": 7}"#, "`url` must be a text"),
        (r#"{"url": ""}"#, "`url` is empty"),
        (r#"{"url": "hunter2", "events": "order.*"}"#, "`events` must be a list of texts"),
        (r#"{"url": "hunter2", "events": [""]}"#, "`events` is empty"),
        (r#"{"url": "hunter2", "match_headers": ["a"]}"#, "`match_headers` must be an object of texts"),
        (r#"{"url": "hunter2", "tenant": "a", "match_headers": {"tenant": "b"}}"#, "given twice"),
        (r#"{"url": "hunter2", "request_headers": {"a": 1}}"#, "`request_headers` must be a text"),
        (r#"{"url": "hunter2", "concurrency": 0}"#, "`concurrency` must be a whole number, 1 to 10000"),
        (r#"{"url": "hunter2", "concurrency": "many"}"#, "`concurrency` must be a whole number"),
        (r#"{"url": "hunter2", "timeout": 5}"#, "`timeout` must be a duration as text"),
        (r#"{"url": "hunter2", "timeout": "5 sec"}"#, "`timeout` is no duration"),
        (r#"{"url": "hunter2", "timeout": "1h"}"#, "`timeout` must be 100ms to 5m"),
        (r#"{"url": "hunter2", "retry": {"attempts": 0}}"#, "`retry.attempts` must be a whole number"),
        (r#"{"url": "hunter2", "retry": {"delays": []}}"#, "`retry.delays` must be a list of 1 to 100"),
        (r#"{"url": "hunter2", "retry": {"delay": "5s"}}"#, "there is no key `retry.delay`"),
        (r#"{"url": "hunter2", "rate_limit": {"per": "1s"}}"#, "`rate_limit` has no `count`"),
        (r#"{"url": "hunter2", "breaker": {"rate": 2}}"#, "`breaker.rate` must be a number, 0.01 to 1"),
        (r#"{"url": "hunter2", "classes": {"200": "rejected"}}"#, "`classes` gives status codes 300 to 599"),
        (r#"{"url": "hunter2", "classes": {"404": "ignored"}}"#, "`classes` gives status codes"),
        (r#"{"url": "hunter2", "ordering": "total"}"#, "`ordering` must be one of: lane, none"),
        (r#"{"url": "hunter2", "on_exhausted": "drop"}"#, "`on_exhausted` must be one of"),
        (r#"{"url": "hunter2", "tennant": "a"}"#, "there is no key `tennant`"),
    ] {
        let Settings::Unusable { reason, .. } = Settings::read(Some(text)) else { panic!("{text}") };
        assert!(reason.contains(problem), "{text} gave {reason}");
        assert!(!reason.contains("hunter2"), "{reason}");
    }
    let Settings::Unusable { reason, .. } = Settings::read(Some(r#"{"timeout": "x", "ordering": 1}"#)) else {
        panic!("usable")
    };
    assert!(
        reason.contains("`url`") && reason.contains("`timeout`") && reason.contains("`ordering`"),
        "{reason}"
    );
}

#[test]
fn events_are_kept_only_for_a_route_that_is_beyond_doubt() {
    let route = |text| match Settings::read(Some(text)) {
        Settings::Unusable { route, .. } => route,
        other => panic!("{text} gave {other:?}"),
    };
    let acme = Route { tenant: Some("acme".into()), ..Route::default() };
    assert_eq!(route(r#"{"url": "x", "tenant": "acme", "timeout": "never"}"#), Some(acme));
    assert_eq!(route(r#"{"url": "x", "tennant": "acme"}"#), None);
    assert_eq!(route(r#"{"url": "x", "tenant": 7}"#), None);
    assert_eq!(route(r#"{"url": "x", "events": {}}"#), None);
    assert_eq!(route("no JSON"), None);
}

#[test]
fn no_settings_are_a_switch() {
    assert_eq!(Settings::read(None), Settings::Switch);
}
