//! `postbox-chaos`: trouble for real relays, and a ledger that must add up. See `docs/guarantees.md`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use postbox_chaos::{Performance, perform};

/// Runs three relays on a private PostgreSQL, troubles them, and adds up what the receiver got. Ends with exit code 1
/// when it does not add up.
#[derive(Debug, Parser)]
#[command(name = "postbox-chaos", version)]
struct Arguments {
    /// Minutes of trouble.
    #[arg(long, default_value_t = 15.0)]
    minutes: f64,

    /// Repeats the plan of troubles of an earlier run [default: another one each time].
    #[arg(long)]
    seed: Option<u64>,

    /// Milliseconds that each of the four producers waits after a transaction, on the average.
    #[arg(long, default_value_t = 30)]
    producer_pause: u64,

    /// Print the ledger as JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let performance = Performance {
        seed: arguments.seed.unwrap_or_else(|| uuid::Uuid::now_v7().as_u64_pair().1 >> 16),
        lasting: Duration::from_secs_f64(arguments.minutes * 60.0),
        producer_pause: Duration::from_millis(arguments.producer_pause),
        progress: Duration::from_secs(15),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("postbox-chaos: {error}");
            return ExitCode::FAILURE;
        }
    };
    let verdict = runtime.block_on(perform(performance));
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&verdict).expect("a verdict is plain data"));
    } else {
        println!("{verdict}");
    }
    if verdict.adds_up() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
