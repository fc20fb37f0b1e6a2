//! `[[destination]]`: what every kind has; how each is reached is in a file of its own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use postbox_core::destination::bounds::{ATTEMPTS, CONCURRENCY, DELAY, JITTER, TIMEOUT};
use postbox_core::destination::{
    BreakerPolicy, DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT, Destination, Ordering, RateLimit, Treatment,
    check_name,
};
use postbox_core::retry::{OnExhausted, RetryPolicy};
use postbox_core::route::Route;
use postbox_core::sink::Sink;

use super::document::{Located, Section, suggestion};
use super::pacing;
use super::problem::Collector;
use super::webhook::WebhookSettings;
use super::whatsapp::{self, WhatsappSettings};

/// Kinds of destination that this build can deliver to.
const KINDS: [&str; 2] = [WEBHOOK, WHATSAPP];

const WEBHOOK: &str = "webhook";
const WHATSAPP: &str = "whatsapp";

/// Kinds that exist in Postbox but not in this build.
const KINDS_ELSEWHERE: [&str; 4] = ["nats", "rabbitmq", "kafka", "redis"];

/// One destination.
#[derive(Debug, Clone)]
pub(crate) struct DestinationConfig {
    pub(crate) name: Located<String>,
    pub(crate) route: Route,
    pub(crate) reach: Reach,
    pub(crate) retry: RetryPolicy,
    pub(crate) ordering: Ordering,
    pub(crate) concurrency: usize,
    pub(crate) rate: Option<RateLimit>,
    pub(crate) breaker: Option<BreakerPolicy>,
    pub(crate) overrides: BTreeMap<u16, Treatment>,
    pub(crate) timeout: Located<Duration>,
}

/// How a destination is reached.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    Webhook(Box<WebhookSettings>),
    Whatsapp(Box<WhatsappSettings>),
}

impl Reach {
    /// Where requests go.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Webhook(webhook) => webhook.url().to_owned(),
            Self::Whatsapp(whatsapp) => whatsapp.url(),
        }
    }

    /// Notes every secret that is missing or of the wrong form, and every file that cannot be used.
    pub(crate) fn check_outside(&self, destination: &str, problems: &Collector) {
        match self {
            Self::Webhook(webhook) => webhook.check_outside(destination, problems),
            Self::Whatsapp(whatsapp) => whatsapp.check_outside(destination, problems),
        }
    }

    /// The sink, with its secrets read now.
    ///
    /// # Errors
    /// What cannot be used, in one line.
    pub(crate) fn sink(&self, concurrency: usize) -> Result<Arc<dyn Sink>, String> {
        Ok(match self {
            Self::Webhook(webhook) => Arc::new(webhook.sink(concurrency)?),
            Self::Whatsapp(whatsapp) => Arc::new(whatsapp.sink(concurrency)?),
        })
    }
}

impl DestinationConfig {
    /// Reads one block; `None` when a mistake was noted that leaves nothing usable.
    pub(crate) fn read(mut section: Section<'_>) -> Option<Self> {
        let header = header_span(&section.span());
        let name = read_name(&mut section);
        match read_kind(&mut section)? {
            WHATSAPP => Self::read_whatsapp(section, name, header),
            _ => Self::read_webhook(section, name, header),
        }
    }

    fn read_webhook(
        mut section: Section<'_>,
        name: Option<Located<String>>,
        header: Range<usize>,
    ) -> Option<Self> {
        let route = read_route(&mut section);
        let webhook = WebhookSettings::read(&mut section);
        let retry = read_retry(&mut section, RetryPolicy::default());
        let concurrency = section.count("concurrency", CONCURRENCY).unwrap_or(DEFAULT_CONCURRENCY);
        let timeout =
            section.duration("timeout", TIMEOUT).unwrap_or(Located { value: DEFAULT_TIMEOUT, span: header });
        let ordering = pacing::read_ordering(&mut section);
        let rate = pacing::read_rate_limit(&mut section, "rate_limit");
        let breaker = pacing::read_breaker(&mut section);
        let overrides = pacing::read_classes(&mut section);
        section.finish();
        let (name, reach) = (name?, Reach::Webhook(Box::new(webhook?)));
        Some(Self { name, route, reach, retry, ordering, concurrency, rate, breaker, overrides, timeout })
    }

    fn read_whatsapp(
        mut section: Section<'_>,
        name: Option<Located<String>>,
        header: Range<usize>,
    ) -> Option<Self> {
        let retry = read_retry(&mut section, whatsapp::default_retry());
        let concurrency = section.count("concurrency", CONCURRENCY).unwrap_or(DEFAULT_CONCURRENCY);
        let timeout =
            section.duration("timeout", TIMEOUT).unwrap_or(Located { value: DEFAULT_TIMEOUT, span: header });
        let whatsapp = WhatsappSettings::read(&mut section, &timeout);
        let ordering = pacing::read_ordering(&mut section);
        let rate = pacing::read_rate_limit(&mut section, "rate_limit").or(Some(whatsapp::DEFAULT_RATE));
        let breaker = pacing::read_breaker(&mut section);
        section.finish();
        let (name, whatsapp) = (name?, whatsapp?);
        Some(Self {
            route: whatsapp::own_route(&name.value),
            reach: Reach::Whatsapp(Box::new(whatsapp)),
            name,
            retry,
            ordering,
            concurrency,
            rate,
            breaker,
            overrides: BTreeMap::new(),
            timeout,
        })
    }

    /// What the engine has to know of it.
    pub(crate) fn destination(&self) -> Destination {
        let (lane_rate, account, evidence) = match &self.reach {
            Reach::Webhook(_) => (None, None, None),
            Reach::Whatsapp(whatsapp) => {
                (Some(whatsapp.lane_rate), Some(Arc::clone(&whatsapp.account)), Some(whatsapp.evidence))
            }
        };
        Destination {
            lane_rate,
            account,
            evidence,
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

/// The kind, when this build knows it.
fn read_kind(section: &mut Section<'_>) -> Option<&'static str> {
    let Some(kind) = section.text("kind") else {
        if !section.has("kind") {
            section.missing("kind", "kind = \"webhook\"");
        }
        return None;
    };
    let word = kind.value.as_str();
    if let Some(known) = KINDS.into_iter().find(|known| *known == word) {
        return Some(known);
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
    None
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

fn read_retry(section: &mut Section<'_>, mut policy: RetryPolicy) -> RetryPolicy {
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
