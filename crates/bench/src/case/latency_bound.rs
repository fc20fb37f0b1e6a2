//! A receiver that answers late: what can be reached is the number of attempts in flight over the latency.

use std::time::Duration;

use super::backlog::Backlog;
use crate::Outcome;
use crate::arguments::Arguments;
use crate::load;
use crate::race::{RATE, Race};
use crate::receiver::Receiver;
use crate::stage::Stage;

const IDEAL: &str = "in flight ÷ latency";
const GENERATOR: &str = "load generator";
const POSTBOX: &str = "postbox";

/// Latency in milliseconds and attempts in flight.
const BOUNDS: [(u32, u32); 3] = [(50, 64), (20, 64), (20, 256)];

/// A drain begins with an empty pipe and ends with one; it must be long beside that.
const SECONDS: u32 = 4;

pub(crate) fn run(stage: &Stage, arguments: &Arguments) -> Outcome<Vec<Race>> {
    BOUNDS.iter().map(|&(latency_ms, in_flight)| bound(stage, arguments, latency_ms, in_flight)).collect()
}

fn bound(stage: &Stage, arguments: &Arguments, latency_ms: u32, in_flight: u32) -> Outcome<Race> {
    let ideal = in_flight * 1_000 / latency_ms;
    let events = ideal * SECONDS;
    let name = format!("latency-bound, {latency_ms} ms, {in_flight} in flight");
    let title = format!(
        "{events} events of {} aggregates to a receiver that answers after {latency_ms} ms",
        arguments.aggregates
    );
    let mut race = Race::new(name, title, IDEAL);
    let receiver = Receiver::start(Duration::from_millis(latency_ms.into()))?;
    let length = Duration::try_from_secs_f64(arguments.seconds)?;
    for _ in 0..stage.rounds {
        race.add(IDEAL, vec![(&RATE, ideal.into())]);
        let ceiling = load::requests_per_second(receiver.address(), in_flight, length)?;
        race.add(GENERATOR, vec![(&RATE, ceiling)]);
        let backlog = Backlog::new(stage, &receiver)?;
        backlog.load(events, arguments.aggregates)?;
        race.add(POSTBOX, backlog.drain(events, in_flight)?);
    }
    Ok(race)
}
