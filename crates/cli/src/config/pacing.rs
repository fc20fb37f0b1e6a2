//! How fast and how hard a destination is approached: the keys `ordering`, `rate_limit`, `breaker` and `classes`.

use std::collections::BTreeMap;
use std::time::Duration;

use postbox_core::destination::{BreakerPolicy, Ordering, RateLimit, Treatment};
use postbox_core::outcome::FailureClass;
use toml::de::DeValue;

use super::document::Section;

const DAY: Duration = Duration::from_secs(86_400);
const MOMENT: Duration = Duration::from_millis(1);

/// The word for an answer that is as good as a 2xx.
const DELIVERED: &str = "delivered";

pub(super) fn read_ordering(section: &mut Section<'_>) -> Ordering {
    let choices = [("lane", Ordering::Lane), ("none", Ordering::None)];
    section.choice("ordering", &choices).unwrap_or_default()
}

pub(super) fn read_rate_limit(section: &mut Section<'_>) -> Option<RateLimit> {
    let mut limit = section.section("rate_limit")?;
    let number = |found: Option<usize>| found.and_then(|number| u32::try_from(number).ok());
    if !limit.has("count") {
        limit.missing("count", "rate_limit = { count = 100, per = \"1s\" }");
    }
    let count = number(limit.count("count", 1..=1_000_000));
    let per = limit.duration("per", MOMENT..=DAY).map_or(Duration::from_secs(1), |found| found.value);
    let burst = number(limit.count("burst", 1..=1_000_000)).unwrap_or(1);
    limit.finish();
    Some(RateLimit { count: count?, per, burst })
}

/// `breaker = false` switches it off.
pub(super) fn read_breaker(section: &mut Section<'_>) -> Option<BreakerPolicy> {
    let default = BreakerPolicy::default();
    if let Some(value) = section.value("breaker")
        && let DeValue::Boolean(on) = value.get_ref()
    {
        return on.then_some(default);
    }
    let Some(mut breaker) = section.section("breaker") else { return Some(default) };
    let number = |found: Option<usize>, default| found.and_then(|n| u32::try_from(n).ok()).unwrap_or(default);
    let policy = BreakerPolicy {
        consecutive: number(breaker.count("consecutive", 1..=1_000_000), default.consecutive),
        patience: breaker
            .duration("patience", Duration::ZERO..=DAY)
            .map_or(default.patience, |found| found.value),
        rate: breaker.number("rate", 0.01..=1.0),
        minimum: number(breaker.count("minimum", 1..=1_000_000), default.minimum),
        window: breaker.duration("window", MOMENT..=DAY).map_or(default.window, |found| found.value),
        cool_down: breaker.duration("cool_down", MOMENT..=DAY).map_or(default.cool_down, |found| found.value),
        longest_cool_down: breaker
            .duration("longest_cool_down", MOMENT..=DAY)
            .map_or(default.longest_cool_down, |found| found.value),
    };
    breaker.finish();
    Some(policy)
}

/// `classes = { "404" = "rejected", "409" = "delivered" }`.
pub(super) fn read_classes(section: &mut Section<'_>) -> BTreeMap<u16, Treatment> {
    let mut overrides = BTreeMap::new();
    for (status, value) in section.entries("classes") {
        let Some(word) = section.as_text("classes", value) else { continue };
        let number = status.value.parse::<u16>().ok().filter(|number| (300..=599).contains(number));
        let treatment = treatment(&word.value);
        if number.is_none() {
            section.problems().note(
                &status.span,
                format!("{:?} is not a status code that can be classed anew", status.value),
                "300 to 599",
                Some("classes = { \"404\" = \"rejected\", \"409\" = \"delivered\" }".into()),
            );
        }
        if treatment.is_none() {
            let words: Vec<_> = FailureClass::ALL.iter().map(|class| class.as_str()).collect();
            section.problems().note(
                &word.span,
                format!("there is no class {:?}", word.value),
                "not one of the classes",
                Some(format!("the classes are: {DELIVERED}, {}", words.join(", "))),
            );
        }
        if let (Some(number), Some(treatment)) = (number, treatment) {
            overrides.insert(number, treatment);
        }
    }
    overrides
}

fn treatment(word: &str) -> Option<Treatment> {
    if word == DELIVERED {
        Some(Treatment::Delivered)
    } else {
        FailureClass::parse(word).map(Treatment::Failed)
    }
}
