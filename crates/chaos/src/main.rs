//! `postbox-chaos`: trouble for real relays, and a ledger that must add up. See `docs/guarantees.md`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use postbox_chaos::{Performance, perform};
use tokio::signal::unix::{SignalKind, signal};

/// Exit code after SIGINT or SIGTERM, as shells give it for the first.
const INTERRUPTED: u8 = 130;

/// Runs three relays on a private PostgreSQL, troubles them, and adds up what the receiver got. Ends with exit code 1
/// when it does not add up, with 130 when it is interrupted; whatever it started ends with it.
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
    let verdict = match runtime.block_on(unless_interrupted(perform(performance))) {
        Ok(Some(verdict)) => verdict,
        Ok(None) => {
            eprintln!("interrupted: the relays and the database are stopped");
            // What it drops are the relays and the server.
            drop(runtime);
            return ExitCode::from(INTERRUPTED);
        }
        Err(error) => {
            eprintln!("postbox-chaos: signals cannot be handled: {error}");
            return ExitCode::FAILURE;
        }
    };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&verdict).expect("a verdict is plain data"));
    } else {
        println!("{verdict}");
    }
    if verdict.adds_up() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What `work` gives; `None` when the program is asked to end before that.
async fn unless_interrupted<T>(work: impl Future<Output = T>) -> std::io::Result<Option<T>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::select! {
        done = work => Some(done),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    })
}
