//! An operator's selection as the condition of a query.

use postbox_core::delivery::DeliveryState;
use postbox_core::operations::Selection;
use rusqlite::types::Value;

use super::clock;

/// A condition on `outbox AS e` and perhaps `outbox_delivery AS d`, with the values of its placeholders in order.
pub(crate) struct Filter {
    conditions: Vec<String>,
    values: Vec<Value>,
    /// Whether it names events or one aggregate, so that a query should begin with `outbox`.
    few_events: bool,
}

impl Filter {
    /// Events that `selection` is about.
    pub(crate) fn events(selection: &Selection) -> Self {
        let mut filter = Self::of_event(selection);
        if let Some(destination) = &selection.destination {
            filter.and(
                "EXISTS (SELECT 1 FROM outbox_delivery WHERE outbox_id = e.id AND destination = ?)",
                destination.clone(),
            );
        }
        if let Some(before) = selection.sent_before {
            filter.and(
                "EXISTS (SELECT 1 FROM outbox_delivery WHERE outbox_id = e.id AND sent_at < ?)",
                clock::bound(before),
            );
        }
        filter
    }

    /// Deliveries in one of `states` that `selection` is about.
    pub(crate) fn deliveries(selection: &Selection, states: &[DeliveryState]) -> Self {
        let mut filter = Self::of_event(selection);
        if let Some(destination) = &selection.destination {
            filter.and("d.destination = ?", destination.clone());
        }
        if let Some(before) = selection.sent_before {
            filter.and("d.sent_at < ?", clock::bound(before));
        }
        let words: Vec<String> = states.iter().map(|state| format!("'{}'", state.as_str())).collect();
        filter.conditions.push(format!("d.state IN ({})", words.join(", ")));
        if !states.contains(&DeliveryState::Delivered) {
            // Nothing but a receipt has it; said here, it opens the indexes of the exceptions.
            filter.conditions.push("d.sent_at IS NULL".to_owned());
        }
        filter
    }

    fn of_event(selection: &Selection) -> Self {
        let mut filter = Self { conditions: Vec::new(), values: Vec::new(), few_events: false };
        if !selection.event_ids.is_empty() {
            let ids: Vec<String> = selection.event_ids.iter().map(|id| format!("\"{id}\"")).collect();
            filter.and("e.event_id IN (SELECT value FROM json_each(?))", format!("[{}]", ids.join(",")));
            filter.few_events = true;
        }
        if let Some(glob) = &selection.event_type {
            filter.and("e.event_type GLOB ?", only_stars(glob));
        }
        match (&selection.aggregate_type, &selection.aggregate_id) {
            (Some(aggregate_type), Some(aggregate_id)) => {
                filter.and(
                    "e.lane_id = (SELECT lane_id FROM outbox_lane WHERE aggregate_type = ? AND aggregate_id = ?)",
                    aggregate_type.clone(),
                );
                filter.values.push(aggregate_id.clone().into());
                filter.few_events = true;
            }
            (Some(aggregate_type), None) => filter.and("e.aggregate_type = ?", aggregate_type.clone()),
            (None, Some(aggregate_id)) => filter.and("e.aggregate_id = ?", aggregate_id.clone()),
            (None, None) => {}
        }
        if let Some(from) = selection.created_from {
            filter.and("e.created_at >= ?", clock::bound(from));
        }
        if let Some(to) = selection.created_to {
            filter.and("e.created_at < ?", clock::bound(to));
        }
        filter
    }

    /// Adds a condition with one placeholder.
    pub(crate) fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.conditions.push(condition.to_owned());
        self.values.push(value.into());
    }

    /// The condition's text; true when there is none.
    pub(crate) fn sql(&self) -> String {
        if self.conditions.is_empty() { "TRUE".to_owned() } else { self.conditions.join(" AND ") }
    }

    /// Values of the placeholders in [`Self::sql`], in their order.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Deliveries `d` joined with their events `e`, begun at the side on which the condition leaves fewer rows. The
    /// order is spelled out (SQLite keeps it for CROSS JOIN), since there need be no statistics to choose it by.
    pub(crate) fn joined_tables(&self) -> &'static str {
        if self.few_events {
            "outbox AS e CROSS JOIN outbox_delivery AS d ON d.outbox_id = e.id"
        } else {
            "outbox_delivery AS d CROSS JOIN outbox AS e ON e.id = d.outbox_id"
        }
    }
}

/// A glob in which only `*` is special, in the dialect of SQLite's GLOB, where `?` and `[` are too.
fn only_stars(glob: &str) -> String {
    let mut pattern = String::with_capacity(glob.len());
    for character in glob.chars() {
        match character {
            '?' | '[' => pattern.extend(['[', character, ']']),
            _ => pattern.push(character),
        }
    }
    pattern
}
