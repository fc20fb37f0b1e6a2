//! What the receiver can take.

use std::time::Duration;

use crate::Outcome;
use crate::arguments::Arguments;
use crate::load;
use crate::process;
use crate::race::{RECEIVER_CPU, REQUESTS, Race};
use crate::receiver::Receiver;
use crate::stage::Stage;

const ONE: &str = "1 connection";
const MANY: &str = "64 connections";

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    let mut race = Race::new(
        "receiver",
        "requests one after the other on keep-alive connections, from a load generator that does nothing else",
        ONE,
    );
    let receiver = Receiver::start(Duration::ZERO)?;
    let length = Duration::try_from_secs_f64(arguments.seconds)?;
    for _ in 0..stage.rounds {
        for (name, connections) in [(ONE, 1), (MANY, 64)] {
            let before = process::tree_cpu_seconds(receiver.pid())?;
            let rate = load::requests_per_second(receiver.address(), connections, length)?;
            let cpu = process::tree_cpu_seconds(receiver.pid())? - before;
            race.add(name, vec![(&REQUESTS, rate), (&RECEIVER_CPU, cpu)]);
        }
    }
    Ok(vec![race])
}
