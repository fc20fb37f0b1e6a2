//! `postbox whatsapp-webhook`: takes in what Meta reports of messages.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use http::{Method, StatusCode};
use postbox_core::reports::{MessageStatus, ReportPolicy, Reports};
use postbox_core::store::Store;
use postbox_sinks::whatsapp::statuses::{self, Notification, Refusal, SIGNATURE_HEADER, Verifier};
use tokio::net::TcpListener;

use crate::cli::Global;
use crate::config::{Config, Reach, Secrets};
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::kept_secret::read_at;
use crate::logging::{self, LogFormat};
use crate::output::say;
use crate::receiver::{Answer, Arrived, Bounds, Receive, Server};
use crate::shutdown::on_signals;

/// Meta's notifications have up to 3 MB (Webhooks, Payload size); it repeats what is not answered 200.
const BOUNDS: Bounds = Bounds { connections: 64, body_bytes: 3 * 1024 * 1024 };

/// Receive WhatsApp's status webhooks and record what became of messages.
///
/// Answers Meta's verification request and takes notifications in that are signed with the app's secret: 200 only when what
/// they say is in the database, 503 while that cannot be reached, so that Meta repeats. A status settles a message that is
/// in doubt. Several of these processes may run. Meta calls https addresses only: put a reverse proxy with a certificate
/// in front.
#[derive(Debug, Args)]
pub(crate) struct WhatsappWebhook {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8767")]
    listen: SocketAddr,

    /// Path of the callback URL.
    #[arg(long, value_name = "PATH", default_value = "/whatsapp", value_parser = parse_path)]
    path: String,

    /// Where the verify token is kept that was entered in Meta's console: env:NAME or file:PATH.
    // Read later: a secret given by mistake must not be repeated in an error.
    #[arg(long, value_name = "PLACE")]
    verify_token: String,

    /// Where the app's secret is kept: env:NAME or file:PATH. Twice while it is changed.
    #[arg(long, value_name = "PLACE", required = true)]
    app_secret: Vec<String>,

    /// Write an event whatsapp.status.<STATUS> when a message gets that far: sent, delivered, read, failed.
    ///
    /// May be given several times. It belongs to the aggregate of the event that the message's own names in its stored
    /// header postbox-origin, or to the type whatsapp.status and the message's own aggregate id.
    #[arg(long, value_name = "STATUS", value_parser = parse_status)]
    follow_up: Vec<MessageStatus>,

    /// How log lines look.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    log_format: LogFormat,
}

impl WhatsappWebhook {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let stop = on_signals()?;
        let config = Config::load(global.config.as_deref(), Secrets::Trust)?;
        let target = Target::choose(global, &config)?;
        let policy = ReportPolicy { destinations: numbers(&config)?, follow_ups: self.follow_up.clone() };
        let verifier = self.verifier()?;
        let database = Database::open(&target)?;
        let store: Arc<dyn Store> = database.store();
        store.check_schema().await?;
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            CommandError::usage(
                format!("{} cannot be used: {error}", self.listen),
                "another program may have it: choose another one with --listen",
            )
        })?;
        logging::start(self.log_format)?;
        let hearing = Hearing { path: self.path.clone(), verifier, policy, reports: database.reports() };
        let server = Server::bounded(listener, Arc::new(hearing), BOUNDS)?;
        say(format!("listening on http://{}{}", server.address(), self.path))?;
        stop.cancelled().await;
        Ok(())
    }

    fn verifier(&self) -> Result<Verifier, CommandError> {
        let token = read_at("--verify-token", &self.verify_token)?;
        let secrets: Vec<_> =
            self.app_secret.iter().map(|place| read_at("--app-secret", place)).collect::<Result<_, _>>()?;
        Verifier::new(token, &secrets)
            .map_err(|problem| CommandError::usage(problem, "look at what is kept at the places given"))
    }
}

/// The numbers of the configuration, whose messages are reported on.
fn numbers(config: &Config) -> Result<Vec<String>, CommandError> {
    let numbers = config.destinations.iter().filter(|found| matches!(found.reach, Reach::Whatsapp(_)));
    let names: Vec<String> = numbers.map(|found| found.name.value.clone()).collect();
    if names.is_empty() {
        return Err(CommandError::usage(
            "the configuration has no destination of kind \"whatsapp\"",
            "give the file that the relay works by with --config: reports are about its numbers",
        ));
    }
    Ok(names)
}

/// Decides about Meta's calls.
struct Hearing {
    path: String,
    verifier: Verifier,
    policy: ReportPolicy,
    reports: Arc<dyn Reports>,
}

impl Receive for Hearing {
    async fn receive(&self, request: Arrived) -> Answer {
        if request.uri.path() != self.path {
            return Answer::status(StatusCode::NOT_FOUND);
        }
        match request.method {
            Method::GET => self.greet(request.uri.query().unwrap_or_default()),
            Method::POST => Answer::status(self.hear(&request).await),
            _ => Answer::status(StatusCode::METHOD_NOT_ALLOWED),
        }
    }
}

impl Hearing {
    fn greet(&self, query: &str) -> Answer {
        match self.verifier.challenge(query) {
            Ok(body) => {
                tracing::info!("the callback URL was verified");
                Answer::Given { status: StatusCode::OK, headers: Vec::new(), body }
            }
            Err(refusal) => {
                tracing::warn!(%refusal, "a verification request was refused");
                Answer::status(status_of(refusal))
            }
        }
    }

    async fn hear(&self, request: &Arrived) -> StatusCode {
        if let Err(refusal) = self.verifier.check(request.header(SIGNATURE_HEADER), &request.body) {
            tracing::warn!(%refusal, "a notification was refused");
            return status_of(refusal);
        }
        let Notification { reports, unread, others } = match statuses::read(&request.body) {
            Ok(notification) => notification,
            Err(problem) => {
                tracing::warn!(problem, "a notification cannot be read");
                return StatusCode::BAD_REQUEST;
            }
        };
        if reports.is_empty() {
            tracing::info!(unread, others, "a notification without anything to record");
            return StatusCode::OK;
        }
        match self.reports.take_in(&reports, &self.policy).await {
            Ok(taken) => {
                tracing::info!(
                    recorded = taken.recorded,
                    repeated = taken.repeated,
                    unmatched = taken.unmatched,
                    resolved = taken.resolved,
                    enqueued = taken.enqueued,
                    unread,
                    others,
                    "reports recorded"
                );
                StatusCode::OK
            }
            Err(error) => {
                tracing::warn!(%error, "reports cannot be recorded; Meta will repeat them");
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }
}

fn status_of(refusal: Refusal) -> StatusCode {
    match refusal {
        Refusal::Unsigned => StatusCode::UNAUTHORIZED,
        Refusal::Forged => StatusCode::FORBIDDEN,
        Refusal::Malformed => StatusCode::BAD_REQUEST,
    }
}

fn parse_path(text: &str) -> Result<String, String> {
    let fine = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'?');
    if fine { Ok(text.to_owned()) } else { Err("write a path that begins with \"/\"".to_owned()) }
}

fn parse_status(word: &str) -> Result<MessageStatus, String> {
    MessageStatus::parse(word).ok_or_else(|| "it is one of sent, delivered, read, failed".to_owned())
}
