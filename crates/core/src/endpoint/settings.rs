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

use super::fields::Fields;
use crate::delivery::DestinationName;
use crate::destination::bounds::{
    ATTEMPTS, BREAKER_RATE, CONCURRENCY, DELAY, JITTER, PATIENCE, RATE, RATE_PER, STATUS_TO_CLASS, TIMEOUT,
};
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
            ordering: fields.choice("ordering", &Ordering::WORDS).unwrap_or_default(),
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
        put(
            "ordering",
            self.ordering != Ordering::default(),
            json!(word_of(&Ordering::WORDS, self.ordering)),
        );
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
            json!(word_of(&OnExhausted::WORDS, retry.on_exhausted)),
        );
        put("description", self.description.is_some(), json!(self.description));
        Value::Object(object)
    }

    /// What the engine has to know of it, under this name.
    #[must_use]
    pub fn destination(&self, name: DestinationName) -> Destination {
        Destination {
            ordering: self.ordering,
            concurrency: self.concurrency,
            rate: self.rate,
            breaker: self.breaker,
            timeout: self.timeout,
            retry: self.retry.clone(),
            overrides: self.overrides.clone(),
            ..Destination::new(name, self.route.clone())
        }
    }
}

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
        let (Some(number), Some(treatment)) = (number, Treatment::parse(&word)) else {
            let classes: Vec<_> = FailureClass::ALL.iter().map(|class| class.as_str()).collect();
            fields.complain(format!(
                "`classes` gives status codes {} to {} one of: {}, {}",
                STATUS_TO_CLASS.start(),
                STATUS_TO_CLASS.end(),
                Treatment::DELIVERED,
                classes.join(", ")
            ));
            continue;
        };
        overrides.insert(number, treatment);
    }
    overrides
}

fn read_retry(fields: &mut Fields) -> RetryPolicy {
    let default = RetryPolicy::default();
    let on_exhausted = fields.choice("on_exhausted", &OnExhausted::WORDS).unwrap_or_default();
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
        overrides.iter().map(|(status, &treatment)| (status.to_string(), json!(treatment.as_str())));
    Value::Object(entries.collect())
}

fn retry_json(policy: &RetryPolicy) -> Value {
    let delays: Vec<String> = policy.delays.iter().map(|&delay| show_duration(delay)).collect();
    json!({ "attempts": policy.attempts, "delays": delays, "jitter": policy.jitter })
}

#[cfg(test)]
mod tests;
