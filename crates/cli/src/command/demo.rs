//! `postbox demo`: the promises, shown on this machine.

use clap::{Args, Subcommand};

use crate::demo::{Ledger, Play, Problem, Stage, WhatsappLedger, WhatsappPlay};
use crate::error::CommandError;
use crate::output::{say, say_json};

/// Show on this machine that nothing is lost, made up or out of order when the relay is killed.
///
/// A small shop on embedded SQLite writes orders and their events, and rolls some back; a receiver on 127.0.0.1 refuses
/// some requests and loses some answers; the relay, a process of its own, is killed (SIGKILL) in the middle and started
/// again. The ledger in the end compares what the receiver really got with the orders in the database. All of it lives
/// in a temporary folder and takes a few seconds; your own configuration and database are not touched.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Demo {
    #[command(subcommand)]
    other: Option<Other>,

    /// Print the ledger as JSON.
    #[arg(long)]
    json: bool,

    /// Orders that the shop takes.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    orders: u64,

    /// Decides which orders are rolled back and which requests the receiver refuses.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Keep the folder with the database, the configuration and the relay's log, and say where it is.
    #[arg(long)]
    keep: bool,
}

/// Another demo.
#[derive(Debug, Subcommand)]
enum Other {
    /// Show that buyers get one WhatsApp message each, whatever dies or is lost.
    ///
    /// A shop on embedded SQLite confirms orders by messages; a fake of Meta's Cloud API on 127.0.0.1 takes them, loses
    /// answers and requests, suspends the account, and sends statuses to the webhook; the relay is killed (SIGKILL) while a
    /// request is on its way. The ledger in the end compares what is on the phones with the orders in the database. Nothing
    /// leaves this machine; it takes about ten seconds.
    Whatsapp(Whatsapp),
}

/// How it ends.
#[derive(Debug, Args)]
struct Whatsapp {
    /// Print the ledger as JSON.
    #[arg(long)]
    json: bool,

    /// Keep the folder with the database, the configuration and the log, and say where it is.
    #[arg(long)]
    keep: bool,
}

impl Demo {
    pub(crate) async fn run(&self) -> Result<(), CommandError> {
        if let Some(Other::Whatsapp(whatsapp)) = &self.other {
            return whatsapp.run().await;
        }
        let stage = Stage::build()?;
        let play = Play { orders: self.orders, seed: self.seed };
        let ledger = unless_interrupted(play.run(&stage)).await?;
        if self.json {
            say_json(&ledger)?
        } else {
            say(statement(&ledger))?
        }
        end(stage, self.keep, ledger.adds_up())
    }
}

impl Whatsapp {
    async fn run(&self) -> Result<(), CommandError> {
        let stage = Stage::build()?;
        let ledger = unless_interrupted(WhatsappPlay.run(&stage)).await?;
        if self.json {
            say_json(&ledger)?
        } else {
            say(phones(&ledger))?
        }
        end(stage, self.keep, ledger.adds_up())
    }
}

async fn unless_interrupted<T>(play: impl Future<Output = Result<T, Problem>>) -> Result<T, CommandError> {
    tokio::select! {
        ledger = play => Ok(ledger?),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            Err(CommandError::remains("the demo was interrupted", "its folder and its processes are gone"))
        }
    }
}

/// Keeps the folder if somebody wants it or needs it, and says whether the ledger adds up.
fn end(stage: Stage, keep: bool, adds_up: bool) -> Result<(), CommandError> {
    let place = if keep || !adds_up {
        let folder = stage.keep();
        eprintln!("kept: {}", folder.display());
        format!("the database and the relay's log are in {}", folder.display())
    } else {
        String::new()
    };
    if adds_up {
        return Ok(());
    }
    Err(CommandError::remains("the ledger does not add up", place))
}

/// The WhatsApp demo's ledger for people.
fn phones(ledger: &WhatsappLedger) -> String {
    let mut text = String::from("\nLedger: what is on the phones, against the orders in the database\n\n");
    text += "  buyer  orders  messages  delivery   reported  what happened\n";
    for account in &ledger.buyers {
        let or_none = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
        text += &format!(
            "  {:<6} {:>6}  {:>8}  {:<9}  {:<8}  {}\n",
            account.buyer,
            account.orders,
            account.messages,
            or_none(&account.state),
            or_none(&account.reported),
            account.what_happened
        );
    }
    text += &format!("\n{:>8}  lost\n{:>8}  sent twice\n", ledger.lost, ledger.duplicates);
    text += &format!("{:>8}  events written by the webhook when a message was read\n", ledger.follow_ups);
    text += if ledger.adds_up() { "\nIt adds up." } else { "\nIt does not add up." };
    text
}

/// The ledger for people.
fn statement(ledger: &Ledger) -> String {
    let row = |number: u64, what: &str| format!("{number:>8}  {what}\n");
    let mut text = String::from("\nLedger: what the receiver got, against the orders in the database\n\n");
    text += &row(ledger.orders_committed, "orders committed");
    text += &row(ledger.orders_rolled_back, "orders rolled back, each after its event had been written");
    text += &row(ledger.events_committed, "events committed with them");
    text += &row(ledger.delivered, "events delivered");
    let repeated = ledger.repeated_after_kill + ledger.repeated_after_lost_answer;
    text += &row(repeated, "of them delivered again under the same event_id:");
    text += &format!(
        "{:10}{} because the relay was killed before it had recorded their delivery,\n{:10}{} because the receiver's answer was lost\n",
        "", ledger.repeated_after_kill, "", ledger.repeated_after_lost_answer
    );
    text += &row(ledger.refused, "requests refused by the receiver and made again");
    text.push('\n');
    text += &row(ledger.lost, "lost");
    text += &row(ledger.phantoms, "phantoms (sent, though rolled back)");
    text += &row(ledger.order_violations, "out of order");
    text += if ledger.adds_up() { "\nIt adds up." } else { "\nIt does not add up." };
    text
}
