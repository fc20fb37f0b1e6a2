//! The cases, each a race or a few.

mod drain;
mod drain_null;
mod isolation;
mod producer;
mod receiver;

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
        };
        run.iter().for_each(report::print);
        races.extend(run);
    }
    if let Some(path) = &arguments.json {
        report::write_json(path, &conditions, &races)?;
    }
    Ok(())
}
