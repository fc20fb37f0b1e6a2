//! A transaction that stays open from before the first event to after the last receipt.

use std::time::Duration;

use super::backlog::Backlog;
use super::open_transaction::OpenTransaction;
use crate::Outcome;
use crate::arguments::Arguments;
use crate::race::Race;
use crate::receiver::Receiver;
use crate::stage::Stage;

/// Enough for dead rows to pile up: every one of them is pinned.
const EVENTS_PER_DRAIN_EVENT: u32 = 5;

/// Attempts in flight at once.
const CONCURRENCY: u32 = 64;

const UNDISTURBED: &str = "undisturbed";

/// What the transaction did before it fell silent.
const HELD: [(&str, &str); 3] = [
    ("has read", "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class"),
    ("has written elsewhere", "BEGIN; INSERT INTO elsewhere VALUES (1); SELECT count(*) FROM outbox"),
    (
        "has written to outbox",
        "BEGIN; INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) \
         VALUES ('order', 'undecided', 'order.confirmed', '{}')",
    ),
];

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let events = arguments.events * EVENTS_PER_DRAIN_EVENT;
    let title = format!(
        "{events} events of {} aggregates over HTTP while another session's transaction, begun before them, stays open",
        arguments.aggregates
    );
    let mut race = Race::new("held-transaction", title, UNDISTURBED);
    let receiver = Receiver::start(Duration::ZERO)?;
    for _ in 0..stage.rounds {
        for (name, statements) in std::iter::once((UNDISTURBED, None))
            .chain(HELD.iter().map(|&(name, statements)| (name, Some(statements))))
        {
            let backlog = Backlog::new(stage, &receiver)?;
            backlog.execute("CREATE TABLE elsewhere (n integer)")?;
            let held = statements
                .map(|statements| OpenTransaction::begin(&backlog.url(), statements))
                .transpose()?;
            backlog.load(events, arguments.aggregates)?;
            race.add(name, backlog.drain(events, CONCURRENCY)?);
            if let Some(held) = held {
                held.commit()?;
            }
        }
    }
    Ok(vec![race])
}
