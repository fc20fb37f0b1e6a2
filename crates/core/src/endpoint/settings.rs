//! The settings of an endpoint: a JSON object with the keys of a `[[destination]]` in the configuration file.
//!
//! Anybody with access to the table can write them, so nothing may be taken for granted. What cannot be used blocks its
//! own endpoint and no other. Of such settings the route still counts when it can be read beyond doubt, so that the
//! endpoint's events are kept for it; with a doubt (an unknown key may be a mistyped `tenant`) nothing is, since what is
//! kept now is sent once the mistake is mended, and must not be another tenant's.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::bounds::{
    ATTEMPTS, BREAKER_RATE, CONCURRENCY, DELAY, JITTER, PATIENCE, RATE, RATE_PER, STATUS_TO_CLASS, TIMEOUT,
};
use super::fields::Fields;
use crate::delivery::DestinationName;
use crate::destination::{
    BreakerPolicy, DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT, Destination, Ordering, RateLimit, Treatment,
};
use crate::duration::show_duration;
use crate::outcome::FailureClass;
use crate::retry::{OnExhausted, RetryPolicy};
use crate::route::{Route, TENANT_HEADER};

/// Every key, in the order in which they are shown.
pub const KEYS: [&str; 17] = [
    "url",
    "events",
    "aggregate_types",
    "match_headers",
    "tenant",
    "request_headers",
    "envelope",
    "source",
    "ordering",
    "concurrency",
    "rate_limit",
    "breaker",
    "classes",
    "timeout",
    "retry",
    "on_exhausted",
    "description",
];

/// Mistakes told at once in the reason why an endpoint is blocked.
const SHOWN_MISTAKES: usize = 8;

/// What the column `settings` says.
#[derive(Debug, Clone, PartialEq)]
pub enum Settings {
    /// Nothing: the row switches a destination of the configuration file.
    Switch,
    /// A whole destination.
    Usable(Box<EndpointSettings>),
    /// Something that cannot be used.
    Unusable {
        /// Every mistake, in one line.
        reason: String,
        /// Which events are kept for it, when that can be read beyond doubt.
        route: Option<Route>,
    },
}

impl Settings {
    /// Reads the column.
    #[must_use]
    pub fn read(stored: Option<&str>) -> Self {
        let Some(text) = stored else { return Self::Switch };
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => EndpointSettings::read(object).map_or_else(
                |(mut problems, route)| {
                    problems.truncate(SHOWN_MISTAKES);
                    Self::Unusable { reason: problems.join("; "), route }
                },
                |settings| Self::Usable(Box::new(settings)),
            ),
            _ => Self::Unusable { reason: "`settings` is not a JSON object".into(), route: None },
        }
    }
}

/// How to send to an endpoint.
#[derive(Clone, PartialEq)]
pub struct EndpointSettings {
    /// Where requests go. May hold a token in its path or query.
    pub url: String,
    /// Which events go there.
    pub route: Route,
    /// Headers of every request. Their values count as secrets.
    pub request_headers: BTreeMap<String, String>,
    /// How the body is written, a word that the sink knows; `None` for its default.
    pub envelope: Option<String>,
    /// What the envelope calls the sender, where it does; `None` for its default.
    pub source: Option<String>,
    /// What must come before what.
    pub ordering: Ordering,
    /// Attempts in flight at once.
    pub concurrency: usize,
    /// Attempts per time.
    pub rate: Option<RateLimit>,
    /// When to leave it alone for a while.
    pub breaker: Option<BreakerPolicy>,
    /// Answers that mean something else here than elsewhere.
    pub overrides: BTreeMap<u16, Treatment>,
    /// Longest time of one attempt.
    pub timeout: Duration,
    /// When and how often to try again.
    pub retry: RetryPolicy,
    /// For people.
    pub description: Option<String>,
}

impl fmt::Debug for EndpointSettings {
    /// Leaves out what may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointSettings").field("route", &self.route).finish_non_exhaustive()
    }
}

impl EndpointSettings {
    /// Reads a JSON object.
    ///
    /// # Errors
    /// Every mistake in it, each naming its key and no value, and the route when it can be read beyond doubt.
    pub fn read(object: Map<String, Value>) -> Result<Self, (Vec<String>, Option<Route>)> {
        let mut fields = Fields::new(object);
        let route = read_route(&mut fields);
        let in_doubt = fields.is_wrong();
        let url = fields.text("url");
        if url.is_none() && !fields.is_wrong() {
            fields.complain("there is no `url`");
        }
        let settings = Self {
            url: url.unwrap_or_default(),
            route: route.clone(),
            request_headers: fields.text_map("request_headers"),
            envelope: fields.text("envelope"),
            source: fields.text("source"),
            ordering: fields.choice("ordering", &ORDERINGS).unwrap_or_default(),
            concurrency: fields.count("concurrency", &CONCURRENCY).unwrap_or(DEFAULT_CONCURRENCY),
            rate: read_rate(&mut fields),
            breaker: read_breaker(&mut fields),
            overrides: read_classes(&mut fields),
            timeout: fields.duration("timeout", &TIMEOUT).unwrap_or(DEFAULT_TIMEOUT),
            retry: read_retry(&mut fields),
            description: fields.text("description"),
        };
        let unknown = fields.unknown();
        if !unknown.is_empty() {
            let named: Vec<String> = unknown.iter().take(5).map(|key| format!("`{key}`")).collect();
            fields.complain(format!(
                "there is no key {}; the keys are: {}",
                named.join(", "),
                KEYS.join(", ")
            ));
        }
        let problems = fields.finish();
        if problems.is_empty() {
            return Ok(settings);
        }
        Err((problems, (!in_doubt && unknown.is_empty()).then_some(route)))
    }

    /// The JSON object that reads back as these settings, without what is the default anyway.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, differs: bool, value: Value| {
            if differs {
                object.insert(key.to_owned(), value);
            }
        };
        let route = &self.route;
        put("url", true, json!(self.url));
        put("events", !route.events.is_empty(), json!(route.events));
        put("aggregate_types", !route.aggregate_types.is_empty(), json!(route.aggregate_types));
        put("match_headers", !route.headers.is_empty(), json!(route.headers));
        put("tenant", route.tenant.is_some(), json!(route.tenant));
        put("request_headers", !self.request_headers.is_empty(), json!(self.request_headers));
        put("envelope", self.envelope.is_some(), json!(self.envelope));
        put("source", self.source.is_some(), json!(self.source));
        put("ordering", self.ordering != Ordering::default(), json!(word_of(&ORDERINGS, self.ordering)));
        put("concurrency", self.concurrency != DEFAULT_CONCURRENCY, json!(self.concurrency));
        put("rate_limit", self.rate.is_some(), self.rate.map(rate_json).unwrap_or_default());
        put("breaker", self.breaker != Some(BreakerPolicy::default()), breaker_json(self.breaker));
        put("classes", !self.overrides.is_empty(), classes_json(&self.overrides));
        put("timeout", self.timeout != DEFAULT_TIMEOUT, json!(show_duration(self.timeout)));
        let (retry, default) = (&self.retry, RetryPolicy::default());
        let schedule = RetryPolicy { on_exhausted: default.on_exhausted, ..retry.clone() };
        put("retry", schedule != default, retry_json(retry));
        put(
            "on_exhausted",
            retry.on_exhausted != default.on_exhausted,
            json!(word_of(&EXHAUSTED, retry.on_exhausted)),
        );
        put("description", self.description.is_some(), json!(self.description));
        Value::Object(object)
    }

    /// What the engine has to know of it, under this name.
    #[must_use]
    pub fn destination(&self, name: DestinationName) -> Destination {
        Destination {
            name,
            route: self.route.clone(),
            ordering: self.ordering,
            concurrency: self.concurrency,
            rate: self.rate,
            breaker: self.breaker,
            timeout: self.timeout,
            retry: self.retry.clone(),
            overrides: self.overrides.clone(),
            disabled: None,
        }
    }
}

const ORDERINGS: [(&str, Ordering); 2] = [("lane", Ordering::Lane), ("none", Ordering::None)];

const EXHAUSTED: [(&str, OnExhausted); 2] =
    [("dead_letter", OnExhausted::DeadLetter), ("hold_lane", OnExhausted::HoldLane)];

/// The word for an answer that is as good as a 2xx.
const DELIVERED: &str = "delivered";

fn word_of<T: Copy + PartialEq>(choices: &[(&'static str, T)], wanted: T) -> &'static str {
    choices.iter().find(|(_, choice)| *choice == wanted).map_or("", |(word, _)| word)
}

fn read_route(fields: &mut Fields) -> Route {
    let route = Route {
        events: fields.texts("events"),
        aggregate_types: fields.texts("aggregate_types"),
        headers: fields.text_map("match_headers"),
        tenant: fields.text("tenant"),
    };
    if route.tenant.is_some() && route.headers.contains_key(TENANT_HEADER) {
        fields.complain(format!(
            "the tenant is given twice, in `tenant` and in `match_headers.{TENANT_HEADER}`"
        ));
    }
    route
}

fn read_rate(fields: &mut Fields) -> Option<RateLimit> {
    fields.object("rate_limit", "rate_limit.", |limit| {
        let count = limit.small_count("count", &RATE);
        if count.is_none() && !limit.is_wrong() {
            limit.complain("`rate_limit` has no `count`");
        }
        RateLimit {
            count: count.unwrap_or(1),
            per: limit.duration("per", &RATE_PER).unwrap_or(Duration::from_secs(1)),
            burst: limit.small_count("burst", &RATE).unwrap_or(1),
        }
    })
}

fn read_breaker(fields: &mut Fields) -> Option<BreakerPolicy> {
    let default = BreakerPolicy::default();
    if let Some(on) = fields.switch("breaker") {
        return on.then_some(default);
    }
    let policy = fields.object("breaker", "breaker.", |breaker| BreakerPolicy {
        consecutive: breaker.small_count("consecutive", &RATE).unwrap_or(default.consecutive),
        patience: breaker.duration("patience", &PATIENCE).unwrap_or(default.patience),
        rate: breaker.number("rate", &BREAKER_RATE),
        minimum: breaker.small_count("minimum", &RATE).unwrap_or(default.minimum),
        window: breaker.duration("window", &RATE_PER).unwrap_or(default.window),
        cool_down: breaker.duration("cool_down", &RATE_PER).unwrap_or(default.cool_down),
        longest_cool_down: breaker
            .duration("longest_cool_down", &RATE_PER)
            .unwrap_or(default.longest_cool_down),
    });
    Some(policy.unwrap_or(default))
}

fn read_classes(fields: &mut Fields) -> BTreeMap<u16, Treatment> {
    let mut overrides = BTreeMap::new();
    for (status, word) in fields.text_map("classes") {
        let number = status.parse().ok().filter(|number| STATUS_TO_CLASS.contains(number));
        let (Some(number), Some(treatment)) = (number, treatment_of(&word)) else {
            let classes: Vec<_> = FailureClass::ALL.iter().map(|class| class.as_str()).collect();
            fields.complain(format!(
                "`classes` gives status codes {} to {} one of: {DELIVERED}, {}",
                STATUS_TO_CLASS.start(),
                STATUS_TO_CLASS.end(),
                classes.join(", ")
            ));
            continue;
        };
        overrides.insert(number, treatment);
    }
    overrides
}

fn treatment_of(word: &str) -> Option<Treatment> {
    if word == DELIVERED {
        Some(Treatment::Delivered)
    } else {
        FailureClass::parse(word).map(Treatment::Failed)
    }
}

/// The word for what an answer means.
#[must_use]
pub fn treatment_word(treatment: Treatment) -> &'static str {
    match treatment {
        Treatment::Delivered => DELIVERED,
        Treatment::Failed(class) => class.as_str(),
    }
}

fn read_retry(fields: &mut Fields) -> RetryPolicy {
    let default = RetryPolicy::default();
    let on_exhausted = fields.choice("on_exhausted", &EXHAUSTED).unwrap_or_default();
    let schedule = fields.object("retry", "retry.", |retry| {
        let delays = retry.durations("delays", &DELAY).filter(|delays| !delays.is_empty());
        RetryPolicy {
            attempts: retry.small_count("attempts", &ATTEMPTS).unwrap_or(default.attempts),
            delays: delays.unwrap_or_else(|| default.delays.clone()),
            jitter: retry.number("jitter", &JITTER).unwrap_or(default.jitter),
            on_exhausted,
        }
    });
    schedule.unwrap_or(RetryPolicy { on_exhausted, ..default })
}

fn rate_json(limit: RateLimit) -> Value {
    json!({ "count": limit.count, "per": show_duration(limit.per), "burst": limit.burst })
}

fn breaker_json(policy: Option<BreakerPolicy>) -> Value {
    let Some(policy) = policy else { return json!(false) };
    let mut shown = json!({
        "consecutive": policy.consecutive,
        "patience": show_duration(policy.patience),
        "minimum": policy.minimum,
        "window": show_duration(policy.window),
        "cool_down": show_duration(policy.cool_down),
        "longest_cool_down": show_duration(policy.longest_cool_down),
    });
    if let Some(rate) = policy.rate {
        shown["rate"] = json!(rate);
    }
    shown
}

fn classes_json(overrides: &BTreeMap<u16, Treatment>) -> Value {
    let entries =
        overrides.iter().map(|(status, &treatment)| (status.to_string(), json!(treatment_word(treatment))));
    Value::Object(entries.collect())
}

fn retry_json(policy: &RetryPolicy) -> Value {
    let delays: Vec<String> = policy.delays.iter().map(|&delay| show_duration(delay)).collect();
    json!({ "attempts": policy.attempts, "delays": delays, "jitter": policy.jitter })
}

#[cfg(test)]
mod tests {
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
            (
                r#"{"url": "hunter2", "classes": {"200": "rejected"}}"#,
                "`classes` gives status codes 300 to 599",
            ),
            (r#"{"url": "hunter2", "classes": {"404": "ignored"}}"#, "`classes` gives status codes"),
            (r#"{"url": "hunter2", "ordering": "total"}"#, "`ordering` must be one of: lane, none"),
            (r#"{"url": "hunter2", "on_exhausted": "drop"}"#, "`on_exhausted` must be one of"),
            (r#"{"url": "hunter2", "tennant": "a"}"#, "there is no key `tennant`"),
        ] {
            let Settings::Unusable { reason, .. } = Settings::read(Some(text)) else { panic!("{text}") };
            assert!(reason.contains(problem), "{text} gave {reason}");
            assert!(!reason.contains("hunter2"), "{reason}");
        }
        let Settings::Unusable { reason, .. } = Settings::read(Some(r#"{"timeout": "x", "ordering": 1}"#))
        else {
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
}
