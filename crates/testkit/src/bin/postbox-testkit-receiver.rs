//! A webhook receiver as a process of its own, for crash tests and benchmarks.
//!
//! `postbox-testkit-receiver [--port N] [--record FILE] [--fail PERCENT] [--lose PERCENT] [--seed N] [--delay-ms N]`
//!
//! Its first line of output is the URL to send to. With `--record` it appends one JSON line per request to FILE (see
//! `postbox_testkit::ledger`); without it, it only counts. `--fail` answers 503, `--lose` takes the event and closes the
//! connection without an answer, both at random by `--seed`. It runs until it is killed or its standard input ends.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use postbox_testkit::faults::Dice;
use postbox_testkit::receiver::{Answer, Receiver, RecordFile, Recording, Script};
use tokio::io::AsyncReadExt as _;

#[derive(Default)]
struct Options {
    port: u16,
    record: Option<std::path::PathBuf>,
    fail: u8,
    lose: u8,
    seed: u64,
    delay: Duration,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("postbox-testkit-receiver: {problem}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve(options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postbox-testkit-receiver: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} {value} is no number"));
        let percent = || value.parse::<u8>().ok().filter(|&percent| percent <= 100);
        let percent = || percent().ok_or_else(|| format!("{name} {value} is no percentage"));
        match name.as_str() {
            "--port" => options.port = value.parse().map_err(|_| format!("{name} {value} is no port"))?,
            "--record" => options.record = Some(value.clone().into()),
            "--fail" => options.fail = percent()?,
            "--lose" => options.lose = percent()?,
            "--seed" => options.seed = number()?,
            "--delay-ms" => options.delay = Duration::from_millis(number()?),
            other => return Err(format!("{other} is unknown")),
        }
    }
    Ok(options)
}

fn script(options: &Options) -> Script {
    if (options.fail, options.lose, options.delay) == (0, 0, Duration::ZERO) {
        return Script::always(Answer::Ok);
    }
    let dice = Mutex::new(Dice::new(options.seed));
    let &Options { fail, lose, delay, .. } = options;
    Script::each(move |_| {
        let mut dice = dice.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = if dice.happens(fail) {
            Answer::Status(503)
        } else if dice.happens(lose) {
            Answer::Lost
        } else {
            Answer::Ok
        };
        if delay.is_zero() { answer } else { Answer::After(delay, Box::new(answer)) }
    })
}

async fn serve(options: Options) -> std::io::Result<()> {
    let script = script(&options);
    let recording = match &options.record {
        Some(path) => Recording::File(RecordFile::append(path)?),
        None => Recording::Count,
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", options.port)).await?;
    let receiver = Receiver::on(listener, script, recording);
    println!("{}", receiver.url());
    let mut ignored = [0; 64];
    while tokio::io::stdin().read(&mut ignored).await? > 0 {}
    Ok(())
}
