//! The `postbox` command.

mod batch;
mod cli;
mod command;
mod config;
mod confirm;
mod database;
mod demo;
mod dice;
mod endpoints;
mod error;
mod exit;
mod horizon;
mod kept_secret;
mod listen;
mod logging;
mod moment;
mod output;
mod receiver;
mod reconcile;
mod report;
mod selection;
mod shutdown;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use error::CommandError;
use exit::Exit;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    report::install();
    let cli = Cli::parse();
    let exit = match run(&cli) {
        Ok(()) => Exit::Ok,
        Err(error) if error.is_closed_pipe() => Exit::Ok,
        Err(error) => {
            let exit = error.exit();
            report::print(error);
            exit
        }
    };
    exit.into()
}

/// One thread runs everything asynchronous: for the relay's hot loop that is the fastest.
fn run(cli: &Cli) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(Box::pin(dispatch(cli)));
    runtime.shutdown_background();
    answer
}

async fn dispatch(cli: &Cli) -> Result<(), CommandError> {
    let global = &cli.global;
    match &cli.command {
        Command::Init(init) => init.run(global),
        Command::Migrate(migrate) => migrate.run(global).await,
        Command::Relay(relay) => relay.run(global).await,
        Command::Status(status) => status.run(global).await,
        Command::Shards(shards) => shards.run(global).await,
        Command::Events(events) => events.run(global).await,
        Command::DeadLetters(dead_letters) => dead_letters.run(global).await,
        Command::Destinations(destinations) => destinations.run(global).await,
        Command::Replay(replay) => replay.run(global).await,
        Command::Prune(prune) => prune.run(global).await,
        Command::Inbox(inbox) => inbox.run(global).await,
        Command::Reconcile(reconcile) => reconcile.run(global).await,
        Command::Grants(grants) => grants.run(global).await,
        Command::Listen(listen) => listen.run().await,
        Command::WhatsappWebhook(webhook) => webhook.run(global).await,
        Command::Demo(demo) => demo.run().await,
        Command::Completions(completions) => completions.run(),
    }
}
