//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures Postbox against its opponents on a private PostgreSQL and a local receiver.
#[derive(Debug, Parser)]
#[command(name = "postbox-bench", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) part: Option<Part>,
    /// Cases to run, in this order; all when none is named.
    pub(crate) cases: Vec<CaseName>,
    /// How often each contender runs, in turn with its opponents.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Events in the drain case.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) events: u32,
    /// Aggregates that the events of the drain cases belong to.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) aggregates: u32,
    /// Lanes in the case `blocked-lanes` that wait, each with an event parked behind its head.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) blocked_lanes: u32,
    /// Length of each sample of the cases that are measured by time.
    #[arg(long, default_value_t = 2.0)]
    pub(crate) seconds: f64,
    /// Writes all samples to this file as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

/// The cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CaseName {
    /// A backlog over HTTP to the local receiver: the naive design against the relay.
    Drain,
    /// A backlog to a destination that does nothing.
    DrainNull,
    /// One of 50 destinations dead and one slow: what the others lose by it.
    Isolation,
    /// What writing an event costs.
    Producer,
    /// The receiver's own ceiling.
    Receiver,
    /// One backlog, shared by 1, 2 and 4 relays.
    Relays,
    /// A receiver that takes its time: attempts in flight ÷ latency is all there is to reach.
    LatencyBound,
    /// A backlog beside lanes that wait for a retry far away or for an operator.
    BlockedLanes,
    /// A backlog while somebody else's transaction stays open.
    HeldTransaction,
    /// How long a relay that joins others waits for its fair share.
    Rebalance,
}

/// Parts that the benchmark plays in processes of their own.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum Part {
    #[command(hide = true)]
    Receive(Receive),
    #[command(hide = true)]
    Relay(Relay),
    #[command(hide = true)]
    Fanout(Fanout),
    #[command(hide = true)]
    NaiveWorkers(NaiveWorkers),
}

/// The local receiver; ends with its standard input.
#[derive(Debug, Args)]
pub(crate) struct Receive {
    /// How long it takes over each answer.
    #[arg(long, default_value_t = 0)]
    pub(crate) latency_ms: u64,
}

/// A relay; ends when nothing is left to do, or, standing, with its standard input.
#[derive(Debug, Args)]
pub(crate) struct Relay {
    #[arg(long)]
    pub(crate) database_url: String,
    /// Where to deliver; without it, to nowhere.
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Attempts in flight at once.
    #[arg(long, default_value_t = 64)]
    pub(crate) concurrency: usize,
    /// Works on when nothing is left to do.
    #[arg(long)]
    pub(crate) standing: bool,
    /// How long its lease lasts without renewal; an attempt may take half of it.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) lease_ms: u64,
}

/// A relay with many destinations, which ends when those that are well have got their events.
#[derive(Debug, Args)]
pub(crate) struct Fanout {
    #[arg(long)]
    pub(crate) database_url: String,
    /// Where the destinations that are well are.
    #[arg(long)]
    pub(crate) target: String,
    #[arg(long)]
    pub(crate) destinations: u32,
    /// Confirmations of the destinations that are well after which it ends.
    #[arg(long)]
    pub(crate) expect: u64,
    /// Where the first destination is instead.
    #[arg(long)]
    pub(crate) dead: Option<String>,
    /// Where the second destination is instead.
    #[arg(long)]
    pub(crate) slow: Option<String>,
}

/// Naive workers that drain a database and end.
#[derive(Debug, Args)]
pub(crate) struct NaiveWorkers {
    #[arg(long)]
    pub(crate) database_url: String,
    #[arg(long)]
    pub(crate) target: String,
    #[arg(long)]
    pub(crate) workers: u32,
}
