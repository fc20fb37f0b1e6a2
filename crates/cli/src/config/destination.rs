//! `[[destination]]`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use postbox_core::destination::bounds::{ATTEMPTS, CONCURRENCY, DELAY, JITTER, TIMEOUT};
use postbox_core::destination::{
    BreakerPolicy, DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT, Destination, Ordering, RateLimit, Treatment,
    check_name,
};
use postbox_core::retry::{OnExhausted, RetryPolicy};
use postbox_core::route::Route;

use super::document::{Located, Section, suggestion};
use super::pacing;
use super::webhook::WebhookSettings;

/// Kinds of destination that this build can deliver to.
const KINDS: [&str; 1] = ["webhook"];

/// Kinds that exist in Postbox but not in this build.
const KINDS_ELSEWHERE: [&str; 5] = ["whatsapp", "nats", "rabbitmq", "kafka", "redis"];

/// One destination.
#[derive(Debug, Clone)]
pub(crate) struct DestinationConfig {
    pub(crate) name: Located<String>,
    pub(crate) route: Route,
    pub(crate) webhook: WebhookSettings,
    pub(crate) retry: RetryPolicy,
    pub(crate) ordering: Ordering,
    pub(crate) concurrency: usize,
    pub(crate) rate: Option<RateLimit>,
    pub(crate) breaker: Option<BreakerPolicy>,
    pub(crate) overrides: BTreeMap<u16, Treatment>,
    pub(crate) timeout: Located<Duration>,
}

impl DestinationConfig {
    /// Reads one block; `None` when a mistake was noted that leaves nothing usable.
    pub(crate) fn read(mut section: Section<'_>) -> Option<Self> {
        let header = header_span(&section.span());
        let name = read_name(&mut section);
        if !read_kind(&mut section) {
            return None;
        }
        let route = read_route(&mut section);
        let webhook = WebhookSettings::read(&mut section);
        let retry = read_retry(&mut section);
        let concurrency = section.count("concurrency", CONCURRENCY).unwrap_or(DEFAULT_CONCURRENCY);
        let timeout =
            section.duration("timeout", TIMEOUT).unwrap_or(Located { value: DEFAULT_TIMEOUT, span: header });
        let ordering = pacing::read_ordering(&mut section);
        let rate = pacing::read_rate_limit(&mut section);
        let breaker = pacing::read_breaker(&mut section);
        let overrides = pacing::read_classes(&mut section);
        section.finish();
        let (name, webhook) = (name?, webhook?);
        Some(Self { name, route, webhook, retry, ordering, concurrency, rate, breaker, overrides, timeout })
    }

    /// What the engine has to know of it.
    pub(crate) fn destination(&self) -> Destination {
        Destination {
            ordering: self.ordering,
            concurrency: self.concurrency,
            rate: self.rate,
            breaker: self.breaker,
            timeout: self.timeout.value,
            retry: self.retry.clone(),
            overrides: self.overrides.clone(),
            ..Destination::new(self.name.value.as_str(), self.route.clone())
        }
    }
}

/// The span of a block's header alone, so that a quotation does not mark the whole block.
fn header_span(span: &Range<usize>) -> Range<usize> {
    span.start..span.end.min(span.start + "[[destination]]".len())
}

fn read_name(section: &mut Section<'_>) -> Option<Located<String>> {
    let Some(name) = section.text("name") else {
        if !section.has("name") {
            section.missing("name", "name = \"billing\"");
        }
        return None;
    };
    if let Err(problem) = check_name(&name.value) {
        section.problems().note(&name.span, "this `name` cannot be used", problem, None);
        return None;
    }
    Some(name)
}

/// Whether the rest of the block can be read as a webhook's.
fn read_kind(section: &mut Section<'_>) -> bool {
    let Some(kind) = section.text("kind") else {
        if !section.has("kind") {
            section.missing("kind", "kind = \"webhook\"");
        }
        return false;
    };
    let word = kind.value.as_str();
    if KINDS.contains(&word) {
        return true;
    }
    let in_this_build = format!("kinds in this build: {}", KINDS.join(", "));
    let (message, help) = if KINDS_ELSEWHERE.contains(&word) {
        (format!("destinations of kind {word:?} are not in this build"), in_this_build)
    } else {
        let every = [&KINDS[..], &KINDS_ELSEWHERE[..]].concat();
        (
            format!("there is no kind {word:?}"),
            format!("{} ({in_this_build})", suggestion(word, &every, "kinds")),
        )
    };
    section.problems().note(&kind.span, message, "cannot be used", Some(help));
    false
}

fn read_route(section: &mut Section<'_>) -> Route {
    ambiguous_headers(section);
    let values = |found: Option<Vec<Located<String>>>| {
        found.unwrap_or_default().into_iter().map(|text| text.value).collect::<Vec<_>>()
    };
    let events = values(section.texts("events"));
    let aggregate_types = values(section.texts("aggregate_types"));
    let entries = section.entries("match_headers");
    let headers: BTreeMap<String, String> = entries
        .into_iter()
        .filter_map(|(name, value)| Some((name.value, section.as_text("match_headers", value)?.value)))
        .collect();
    let tenant = section.text("tenant").map(|text| text.value);
    Route { events, aggregate_types, headers, tenant }
}

/// A bare `headers` could mean either; guessing wrong would leave every event unrouted or every request bare.
fn ambiguous_headers(section: &mut Section<'_>) {
    let Some(span) = section.key_span("headers") else { return };
    section.forgive("headers");
    section.problems().note(
        &span,
        "`headers` is not clear here",
        "of the event, or of the request?",
        Some(
            "match_headers: the event's own headers that must be equal for it to go here; \
             request_headers: what is sent with every request"
                .into(),
        ),
    );
}

fn read_retry(section: &mut Section<'_>) -> RetryPolicy {
    let mut policy = RetryPolicy::default();
    if let Some(mut retry) = section.section("retry") {
        let attempts = retry.count("attempts", ATTEMPTS).and_then(|attempts| u32::try_from(attempts).ok());
        policy.attempts = attempts.unwrap_or(policy.attempts);
        let delays = retry.durations("delays", DELAY);
        policy.delays = delays.filter(|delays| !delays.is_empty()).unwrap_or(policy.delays);
        policy.jitter = retry.number("jitter", JITTER).unwrap_or(policy.jitter);
        retry.finish();
    }
    policy.on_exhausted = section.choice("on_exhausted", &OnExhausted::WORDS).unwrap_or_default();
    policy
}
