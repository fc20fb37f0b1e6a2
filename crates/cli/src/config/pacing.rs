//! How fast and how hard a destination is approached: the keys `ordering`, `rate_limit`, `lane_rate_limit`, `breaker`
//! and `classes`.

use std::collections::BTreeMap;
use std::time::Duration;

use postbox_core::destination::bounds::{BREAKER_RATE, PATIENCE, RATE, RATE_PER, STATUS_TO_CLASS};
use postbox_core::destination::{BreakerPolicy, Ordering, RateLimit, Treatment};
use postbox_core::outcome::FailureClass;
use toml::de::DeValue;

use super::document::Section;

pub(super) fn read_ordering(section: &mut Section<'_>) -> Ordering {
    section.choice("ordering", &Ordering::WORDS).unwrap_or_default()
}

pub(super) fn read_rate_limit(section: &mut Section<'_>, key: &'static str) -> Option<RateLimit> {
    let mut limit = section.section(key)?;
    let number = |found: Option<usize>| found.and_then(|number| u32::try_from(number).ok());
    if !limit.has("count") {
        limit.missing("count", &format!("{key} = {{ count = 100, per = \"1s\" }}"));
    }
    let count = number(limit.count("count", RATE));
    let per = limit.duration("per", RATE_PER).map_or(Duration::from_secs(1), |found| found.value);
    let burst = number(limit.count("burst", RATE)).unwrap_or(1);
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
        consecutive: number(breaker.count("consecutive", RATE), default.consecutive),
        patience: breaker.duration("patience", PATIENCE).map_or(default.patience, |found| found.value),
        rate: breaker.number("rate", BREAKER_RATE),
        minimum: number(breaker.count("minimum", RATE), default.minimum),
        window: breaker.duration("window", RATE_PER).map_or(default.window, |found| found.value),
        cool_down: breaker.duration("cool_down", RATE_PER).map_or(default.cool_down, |found| found.value),
        longest_cool_down: breaker
            .duration("longest_cool_down", RATE_PER)
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
        let number = status.value.parse::<u16>().ok().filter(|number| STATUS_TO_CLASS.contains(number));
        let treatment = Treatment::parse(&word.value);
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
                Some(format!("the classes are: {}, {}", Treatment::DELIVERED, words.join(", "))),
            );
        }
        if let (Some(number), Some(treatment)) = (number, treatment) {
            overrides.insert(number, treatment);
        }
    }
    overrides
}
