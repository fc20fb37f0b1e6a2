//! Committing that an attempt begins, before its request is written.

use std::time::Duration;

use postbox_core::delivery::AttemptFailure;
use postbox_core::lease::RelayId;
use postbox_core::outcome::FailureClass;
use postbox_core::store::Beginning;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, named_params};

use super::clock;
use super::event::optional_text;
use super::failure::Attempt;
use super::history;

/// See [`postbox_core::store::Store::begin`].
pub(crate) fn begin(connection: &mut Connection, beginning: &Beginning, relay: RelayId) -> Attempt<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let now = clock::now(&transaction)?;
    let key = (beginning.id, &*beginning.destination);
    let known: Option<(Option<u32>, Option<String>)> = transaction
        .prepare_cached(include_str!("sql/beginnable.sql"))?
        .query_row(
            named_params! {
                ":id": key.0,
                ":destination": key.1,
                ":attempt": beginning.attempt,
                ":shard": beginning.term.shard,
                ":epoch": beginning.term.epoch,
                ":relay": relay.to_string(),
            },
            |row| Ok((row.get(0)?, optional_text(row, 1)?)),
        )
        .optional()?;
    let Some((begun, history)) = known else { return Ok(false) };
    // An attempt that was begun before and of which nothing was recorded becomes history.
    let earlier = begun.filter(|&begun| begun < beginning.attempt);
    let history = earlier.map(|attempt| {
        let failure = AttemptFailure {
            class: FailureClass::Unknown.as_str(),
            reason: "it began, and nothing more was heard of it".to_owned(),
            answer: None,
            took: Duration::ZERO,
        };
        history::extend(history.as_deref(), attempt, None, &failure, now)
    });
    transaction.prepare_cached(include_str!("sql/begin.sql"))?.execute(named_params! {
        ":id": key.0,
        ":destination": key.1,
        ":attempt": beginning.attempt,
        ":earlier": earlier,
        ":decide_at": clock::after(now, beginning.decide_in),
        ":last_class": FailureClass::Unknown.as_str(),
        ":last_error": format!("attempt {} began; what became of it is not known yet", beginning.attempt),
        ":history": history,
    })?;
    transaction.commit()?;
    Ok(true)
}
