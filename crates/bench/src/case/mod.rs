//! The cases, each a race or a few.

mod backlog;
mod blocked_lanes;
mod drain;
mod drain_null;
mod held_transaction;
mod isolation;
mod latency_bound;
mod open_transaction;
mod patience;
mod producer;
mod rebalance;
mod receiver;
mod relays;

use clap::ValueEnum as _;

use crate::Outcome;
use crate::arguments::{Arguments, CaseName};
use crate::report;
use crate::stage::Stage;

/// Runs the cases asked for, prints each as soon as it is done, and writes the JSON at the end.
pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    let stage = Stage::set(arguments.rounds);
    let conditions = stage.conditions()?;
    conditions.print();
    let cases = if arguments.cases.is_empty() { CaseName::value_variants() } else { &arguments.cases };
    let mut races = Vec::new();
    for case in cases {
        let run = match case {
            CaseName::Drain => drain::run(&stage, arguments)?,
            CaseName::DrainNull => drain_null::run(&stage, arguments)?,
            CaseName::Isolation => isolation::run(&stage, arguments)?,
            CaseName::Producer => producer::run(&stage, arguments)?,
            CaseName::Receiver => receiver::run(&stage, arguments)?,
            CaseName::Relays => relays::run(&stage, arguments)?,
            CaseName::LatencyBound => latency_bound::run(&stage, arguments)?,
            CaseName::BlockedLanes => blocked_lanes::run(&stage, arguments)?,
            CaseName::HeldTransaction => held_transaction::run(&stage, arguments)?,
            CaseName::Rebalance => rebalance::run(&stage, arguments)?,
        };
        run.iter().for_each(report::print);
        races.extend(run);
    }
    if let Some(path) = &arguments.json {
        report::write_json(path, &conditions, &races)?;
    }
    Ok(())
}
