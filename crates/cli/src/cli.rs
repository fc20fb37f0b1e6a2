//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::command;
use crate::exit::EXIT_CODES_HELP;

/// Transactional outbox: delivers the events that committed with your data, at least once and in order.
#[derive(Debug, Parser)]
#[command(name = "postbox", version, after_help = EXIT_CODES_HELP, max_term_width = 100)]
#[command(disable_help_subcommand = true, infer_long_args = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct Global {
    /// Configuration file [default: postbox.toml, if there is one].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Database: postgres://user@host/db or sqlite:path. Overrides the environment and the file.
    #[arg(long, global = true, value_name = "URL", env = "POSTBOX_DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,

    /// Schema of the tables (PostgreSQL) [default: the connection's].
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) schema: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(command::init::Init),
    Migrate(command::migrate::Migrate),
    Relay(command::relay::Relay),
    Status(command::status::Status),
    Shards(command::shards::Shards),
    #[command(subcommand)]
    Events(command::events::Events),
    #[command(subcommand)]
    DeadLetters(command::dead_letters::DeadLetters),
    Replay(command::replay::Replay),
    #[command(subcommand)]
    Destinations(command::destinations::Destinations),
    Prune(command::prune::Prune),
    #[command(subcommand)]
    Inbox(command::inbox::Inbox),
    Reconcile(command::reconcile::Reconcile),
    Grants(command::grants::Grants),
    Listen(command::listen::Listen),
    WhatsappWebhook(command::whatsapp_webhook::WhatsappWebhook),
    Demo(command::demo::Demo),
    Completions(command::completions::Completions),
}
