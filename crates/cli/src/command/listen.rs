//! `postbox listen`: a receiver for developers.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use http::StatusCode;
use postbox_sinks::standard_webhooks::Verifier;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::parse_duration;
use crate::dice::Dice;
use crate::error::CommandError;
use crate::kept_secret::read_at;
use crate::listen::{Failure, Listener, Mood, Style, Which};
use crate::output::say;
use crate::receiver::Server;
use crate::shutdown::on_signals;

/// Receive webhooks on this machine and print a line for each; for development.
///
/// Verifies signatures when given a secret, marks duplicates and what comes out of order, and fails as you ask it to. A
/// request whose signature does not fit is answered 401. Listens on 127.0.0.1 only; Ctrl-C prints a summary.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Port on 127.0.0.1; 0 takes a free one and prints it.
    #[arg(long, value_name = "PORT", default_value_t = 8765)]
    port: u16,

    /// Where a secret to verify with is kept: env:NAME or file:PATH; or a public key itself, whpk_….
    ///
    /// May be given several times; a request has to fit one of them.
    // Read later: a secret given by mistake must not be repeated in an error.
    #[arg(long, value_name = "PLACE")]
    secret: Vec<String>,

    /// Print one JSON object per line; docs/configuration.md names its fields.
    #[arg(long)]
    json: bool,

    /// Print the beginning of each body too.
    #[arg(long)]
    show_body: bool,

    #[command(flatten)]
    answers: Answers,
}

/// What requests are answered.
#[derive(Debug, Args)]
#[command(next_help_heading = "Answers")]
struct Answers {
    /// Status to answer; with --fail-first or --fail-rate only to the requests that fail [default: 200, failures 503].
    #[arg(long, value_name = "STATUS", value_parser = parse_status)]
    answer: Option<StatusCode>,

    /// Do not answer at all; with --fail-first or --fail-rate only the requests that fail.
    #[arg(long, conflicts_with = "answer")]
    hang: bool,

    /// Fail the first N requests.
    #[arg(long, value_name = "N", conflicts_with = "fail_rate")]
    fail_first: Option<u64>,

    /// Fail this share of the requests, 0 to 1, by chance.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    fail_rate: Option<f64>,

    /// Decides which requests --fail-rate fails.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Take this long for every answer.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    delay: Duration,

    /// Send Retry-After with every failure.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    retry_after: Option<Duration>,
}

impl Listen {
    pub(crate) async fn run(&self) -> Result<(), CommandError> {
        let (listener, lines) = Listener::new(
            self.verifier()?,
            self.answers.mood(),
            Style { json: self.json, body: self.show_body },
        );
        let listener = Arc::new(listener);
        let stop = on_signals()?;
        let server = Server::on(self.bind().await?, Arc::clone(&listener))?;
        let url = format!("http://{}/", server.address());
        match self.json {
            true => say(serde_json::json!({ "listening": url }).to_string())?,
            false => say(format!("listening on {url} (Ctrl-C ends)"))?,
        }
        print(lines, stop).await?;
        drop(server);
        let tally = listener.tally();
        match self.json {
            true => say(serde_json::json!({ "summary": tally }).to_string()),
            false => say(tally.text()),
        }
    }

    async fn bind(&self) -> Result<TcpListener, CommandError> {
        TcpListener::bind(("127.0.0.1", self.port)).await.map_err(|error| {
            CommandError::usage(
                format!("port {} of 127.0.0.1 cannot be used: {error}", self.port),
                "another program may have it: choose one with --port, or 0 for a free one",
            )
        })
    }

    fn verifier(&self) -> Result<Option<Verifier>, CommandError> {
        if self.secret.is_empty() {
            return Ok(None);
        }
        let secrets = self.secret.iter().map(|place| read_secret(place)).collect::<Result<Vec<_>, _>>()?;
        Verifier::new(&secrets).map(Some).map_err(|error| {
            CommandError::usage(
                "a secret to verify with cannot be used",
                format!("what is kept there {error}"),
            )
        })
    }
}

impl Answers {
    fn mood(&self) -> Mood {
        let which = match (self.fail_first, self.fail_rate) {
            (Some(first), _) => Which::First(first),
            (None, Some(share)) => Which::Some(share, Dice::new(self.seed)),
            (None, None) if self.hang || self.answer.is_some() => Which::All,
            (None, None) => Which::None,
        };
        let failure = match self.answer {
            _ if self.hang => Failure::Hang,
            status => Failure::Status(status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE)),
        };
        Mood { failure, which, delay: self.delay, retry_after: self.retry_after }
    }
}

/// Prints every line until `stop`, those included that are waiting by then.
async fn print(mut lines: mpsc::Receiver<String>, stop: CancellationToken) -> Result<(), CommandError> {
    loop {
        tokio::select! {
            biased;
            line = lines.recv() => match line {
                Some(line) => say(line)?,
                None => return Ok(()),
            },
            () = stop.cancelled() => return Ok(()),
        }
    }
}

/// What is kept at `env:NAME` or `file:PATH`, or a public key as it is.
fn read_secret(text: &str) -> Result<SecretString, CommandError> {
    if text.starts_with("whpk_") {
        return Ok(text.into());
    }
    read_at("--secret", text)
}

fn parse_status(text: &str) -> Result<StatusCode, String> {
    let status = text.parse::<u16>().ok().filter(|status| (200..600).contains(status));
    status
        .and_then(|status| StatusCode::from_u16(status).ok())
        .ok_or_else(|| "write a status from 200 to 599".to_owned())
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1, for example 0.1".to_owned())
}
