//! `postbox-bench`: how fast Postbox is, on this machine, against its opponents. See `docs/benchmarks.md`.

mod arguments;
mod case;
mod contender;
mod load;
mod process;
mod producing;
mod race;
mod receiver;
mod report;
mod stage;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::{Arguments, Part};

/// The allocator of the `postbox` command; every contender gets it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whatever can go wrong in a benchmark ends it with one message.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.part {
        Some(Part::Receive(receive)) => receiver::serve(receive),
        Some(Part::Relay(relay)) => contender::relay::play(relay),
        Some(Part::Fanout(fanout)) => contender::fanout::play(fanout),
        Some(Part::NaiveWorkers(workers)) => contender::naive::play(workers),
        None => case::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postbox-bench: {error}");
            let mut cause = error.source();
            while let Some(inner) = cause {
                eprintln!("  because: {inner}");
                cause = inner.source();
            }
            ExitCode::FAILURE
        }
    }
}
