//! A selection as the parameters of a statement.

use jiff::Timestamp;
use postbox_core::delivery::DeliveryState;
use postbox_core::operations::Selection;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::connection::Param;

/// The conditions of a selection; null where there is none.
pub(super) struct Chosen<'a> {
    event_ids: Option<&'a [Uuid]>,
    destination: Option<&'a str>,
    type_like: Option<String>,
    aggregate_type: Option<&'a str>,
    aggregate_id: Option<&'a str>,
    created_from: Option<Timestamp>,
    created_to: Option<Timestamp>,
    sent_before: Option<Timestamp>,
}

impl<'a> Chosen<'a> {
    pub(super) fn by(selection: &'a Selection) -> Self {
        Self {
            event_ids: (!selection.event_ids.is_empty()).then_some(&selection.event_ids),
            destination: selection.destination.as_deref(),
            type_like: selection.event_type.as_deref().map(like),
            aggregate_type: selection.aggregate_type.as_deref(),
            aggregate_id: selection.aggregate_id.as_deref(),
            created_from: selection.created_from,
            created_to: selection.created_to,
            sent_before: selection.sent_before,
        }
    }

    /// The eight parameters, in the order in which all statements take them.
    pub(super) fn params(&self) -> [Param<'_>; 8] {
        [
            (&self.event_ids, Type::UUID_ARRAY),
            (&self.destination, Type::TEXT),
            (&self.type_like, Type::TEXT),
            (&self.aggregate_type, Type::TEXT),
            (&self.aggregate_id, Type::TEXT),
            (&self.created_from, Type::TIMESTAMPTZ),
            (&self.created_to, Type::TIMESTAMPTZ),
            (&self.sent_before, Type::TIMESTAMPTZ),
        ]
    }
}

pub(super) fn words(states: &[DeliveryState]) -> Vec<&'static str> {
    states.iter().map(|state| state.as_str()).collect()
}

/// A glob, in which only `*` is special, as a pattern for LIKE.
fn like(glob: &str) -> String {
    let mut pattern = String::with_capacity(glob.len());
    for character in glob.chars() {
        match character {
            '*' => pattern.push('%'),
            '%' | '_' | '\\' => pattern.extend(['\\', character]),
            _ => pattern.push(character),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn only_the_star_of_a_glob_matches_more_than_itself() {
        assert_eq!(like("order.*"), "order.%");
        assert_eq!(like("a_b%c\\*"), "a\\_b\\%c\\\\%");
    }
}
