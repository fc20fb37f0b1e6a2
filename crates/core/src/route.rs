//! Routes: which events go to which destination.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::event::Event;

/// The conditions of a destination; an event goes there when all of them hold. An empty condition always holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// Globs on `event_type`, one of which must match: `*` stands for any run of characters, also none.
    pub events: Vec<String>,
    /// Aggregate types, one of which must be equal.
    pub aggregate_types: Vec<String>,
    /// Stored headers that must be equal.
    pub headers: BTreeMap<String, String>,
    /// Tenant; must equal the stored header `tenant`.
    pub tenant: Option<String>,
}

/// The stored header that names an event's tenant.
pub const TENANT_HEADER: &str = "tenant";

impl Route {
    /// Whether `event`, whose stored headers are `headers`, goes here.
    #[must_use]
    pub fn matches(&self, event: &Event, headers: &StoredHeaders) -> bool {
        (self.events.is_empty() || self.events.iter().any(|glob| glob_matches(glob, &event.event_type)))
            && (self.aggregate_types.is_empty() || self.aggregate_types.contains(&event.aggregate_type))
            && self.headers.iter().all(|(name, value)| headers.get(name) == Some(value))
            && self.tenant.as_ref().is_none_or(|tenant| headers.tenant() == Some(tenant))
    }
}

/// The text values of an event's stored headers, parsed when first asked for. Anything else in them matches nothing.
#[derive(Debug)]
pub struct StoredHeaders<'a> {
    text: Option<&'a str>,
    parsed: OnceCell<BTreeMap<String, String>>,
}

impl<'a> StoredHeaders<'a> {
    /// Those of `event`.
    #[must_use]
    pub fn of(event: &'a Event) -> Self {
        Self { text: event.headers.as_deref(), parsed: OnceCell::new() }
    }

    /// The value of one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&String> {
        self.parsed.get_or_init(|| self.text.map(parse).unwrap_or_default()).get(name)
    }

    /// The event's tenant.
    #[must_use]
    pub fn tenant(&self) -> Option<&String> {
        self.get(TENANT_HEADER)
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let parsed: Option<BTreeMap<String, serde_json::Value>> = serde_json::from_str(text).ok();
    let texts = parsed.unwrap_or_default().into_iter().filter_map(|(name, value)| match value {
        serde_json::Value::String(text) => Some((name, text)),
        _ => None,
    });
    texts.collect()
}

/// Whether `text` matches `glob`, in which `*` stands for any run of characters. Linear in memory, no recursion.
#[must_use]
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if g < glob.len() && glob[g] == b'*' {
            star = Some((g, t));
            g += 1;
        } else if g < glob.len() && glob[g] == text[t] {
            g += 1;
            t += 1;
        } else if let Some((star_g, star_t)) = star {
            star = Some((star_g, star_t + 1));
            g = star_g + 1;
            t = star_t + 1;
        } else {
            return false;
        }
    }
    glob[g..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_people_expect() {
        for (glob, text, expected) in [
            ("order.*", "order.confirmed", true),
            ("order.*", "order.", true),
            ("order.*", "orders.confirmed", false),
            ("*", "", true),
            ("*.failed", "a.b.failed", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("order", "order.x", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(glob_matches(glob, text), expected, "{glob:?} on {text:?}");
        }
    }
}
