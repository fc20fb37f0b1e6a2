//! `secret`: what signs a webhook's requests, and until when.

use jiff::Timestamp;
use postbox_sinks::standard_webhooks::{SigningSecret, TOLERANCE};
use secrecy::SecretString;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Located, Section};
use super::secret::{SecretRef, reference, reference_in};

const HELP: &str = "write { env = \"NAME\" } or { file = \"/path\" }, or a list of these while secrets rotate, the old one \
                    with until = \"2026-12-31T00:00:00Z\"";

/// One secret, kept elsewhere.
#[derive(Debug, Clone)]
pub(super) struct SigningRef {
    pub(super) kept: Located<SecretRef>,
    until: Option<Timestamp>,
}

impl SigningRef {
    /// Whether it signs nothing any more: then it may already be gone from where it was kept.
    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// The secret as the sink takes it.
    pub(super) fn with(&self, secret: SecretString) -> SigningSecret {
        SigningSecret { secret, until: self.until }
    }
}

/// Reads `secret`: a reference, or a list of them during a rotation, of which at least one has no end.
pub(super) fn read(section: &mut Section<'_>) -> Vec<SigningRef> {
    let Some(value) = section.value("secret") else { return Vec::new() };
    let found: Vec<Option<SigningRef>> = match value.get_ref() {
        DeValue::Array(items) => items.iter().map(|item| read_one(section, item)).collect(),
        _ => vec![read_one(section, value)],
    };
    let complete = found.iter().all(Option::is_some);
    let found: Vec<SigningRef> = found.into_iter().flatten().collect();
    if complete && found.iter().all(|secret| secret.until.is_some()) {
        section.problems().note(
            &value.span(),
            "no secret here is without an end",
            "after the last one, requests would go out unsigned",
            Some(
                "leave `until` out of the newest secret, or take the key out to send unsigned requests"
                    .into(),
            ),
        );
    }
    found
}

fn read_one(section: &Section<'_>, value: &Spanned<DeValue<'_>>) -> Option<SigningRef> {
    let DeValue::Table(table) = value.get_ref() else {
        return Some(SigningRef { kept: reference(section, "secret", value)?, until: None });
    };
    let is_until = |name: &str| name == "until";
    let until = table.iter().find(|(name, _)| is_until(name.get_ref()));
    let place: DeTable<'_> = table
        .iter()
        .filter(|(name, _)| !is_until(name.get_ref()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let kept = reference_in(section, "secret", &place, value.span(), HELP);
    let until = match until {
        Some((_, moment)) => Some(read_moment(section, moment)?),
        None => None,
    };
    Some(SigningRef { kept: kept?, until })
}

/// A moment as a text or as TOML's own date with a time and an offset.
fn read_moment(section: &Section<'_>, value: &Spanned<DeValue<'_>>) -> Option<Timestamp> {
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        _ => String::new(),
    };
    let moment = text.parse();
    if moment.is_err() {
        section.problems().note(
            &value.span(),
            "`until` is no moment",
            "a date with a time and an offset belongs here",
            Some(format!(
                "write for example \"2026-12-31T00:00:00Z\"; leave receivers time to change, and at least the {} minutes \
                 for which they accept a request",
                TOLERANCE.as_secs() / 60
            )),
        );
    }
    moment.ok()
}
