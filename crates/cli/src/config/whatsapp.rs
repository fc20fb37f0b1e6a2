//! The keys of a destination of kind `whatsapp`.
//!
//! What a number's id, a version or a token may be is the sink's knowledge: each is tried on a sink of its own here, so
//! that a mistake is told with its place.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use postbox_core::destination::{EvidencePolicy, RateLimit, WithoutEvidence};
use postbox_core::duration::show_duration;
use postbox_core::retry::RetryPolicy;
use postbox_core::route::Route;
use postbox_sinks::whatsapp::{
    ConfigError, DEFAULT_BASE_URL, DEFAULT_LANGUAGE, DEFAULT_VERSION, Egress, Token, WhatsappConfig,
    WhatsappSink,
};

use super::document::{Located, Section};
use super::pacing;
use super::problem::Collector;
use super::secret::{SecretRef, reference};
use super::transport::Transport;

/// What a number may send by default: 80 messages in a second (Meta: Throughput).
pub(super) const DEFAULT_RATE: RateLimit = RateLimit { count: 80, per: Duration::from_secs(1), burst: 1 };

/// What one person may be sent: a message in 6 seconds, up to 45 at once (Meta: Pair rate limits).
const DEFAULT_LANE_RATE: RateLimit = RateLimit { count: 1, per: Duration::from_secs(6), burst: 45 };

/// How long statuses are awaited when nobody knows whether a message was taken. They come within seconds.
const DEFAULT_EVIDENCE_WAIT: Duration = Duration::from_secs(2 * 60);

/// The wait for statuses.
const EVIDENCE_WAIT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(7 * 86_400);

/// How long a token that was read is used without looking again whether another one is kept there now.
const TOKEN_AGE: Duration = Duration::from_secs(5);

/// Longest name of an account, in bytes.
const MAX_ACCOUNT_BYTES: usize = 200;

/// How to reach people from one number.
#[derive(Debug, Clone)]
pub(crate) struct WhatsappSettings {
    phone_number_id: Located<String>,
    token: Located<SecretRef>,
    version: Option<Located<String>>,
    base_url: Option<Located<String>>,
    language: Option<Located<String>>,
    transport: Transport,
    /// The account whose limits it shares.
    pub(crate) account: Arc<str>,
    /// Attempts per time to one person.
    pub(crate) lane_rate: RateLimit,
    /// What to do when nobody knows whether a message was taken.
    pub(crate) evidence: EvidencePolicy,
}

/// The events that are messages for `destination`.
pub(super) fn own_route(destination: &str) -> Route {
    Route { aggregate_types: vec![format!("whatsapp/{destination}")], ..Route::default() }
}

/// As everywhere, but the first repetition comes at once: what is repeated so soon was proven not to have been sent.
pub(super) fn default_retry() -> RetryPolicy {
    let delays = [1, 10, 60, 600, 1_800, 7_200, 21_600].map(Duration::from_secs).to_vec();
    RetryPolicy { delays, ..RetryPolicy::default() }
}

impl WhatsappSettings {
    /// Reads the keys; `None` when a mistake was noted that leaves nothing usable.
    pub(super) fn read(section: &mut Section<'_>, timeout: &Located<Duration>) -> Option<Self> {
        let phone_number_id = section.text("phone_number_id");
        if phone_number_id.is_none() && !section.has("phone_number_id") {
            section.missing("phone_number_id", "phone_number_id = \"106540352242922\"");
        }
        let token = match section.value("token") {
            Some(value) => reference(section, "token", value),
            None => {
                section.missing("token", "token = { env = \"WHATSAPP_TOKEN\" }");
                None
            }
        };
        let (version, base_url) = (section.text("version"), section.text("base_url"));
        let language = section.text("language");
        let transport = Transport::read(section, Egress::unrestricted());
        let account = read_account(section);
        let lane_rate = pacing::read_rate_limit(section, "lane_rate_limit").unwrap_or(DEFAULT_LANE_RATE);
        let evidence = read_evidence(section, timeout);
        let (phone_number_id, token) = (phone_number_id?, token?);
        let account = account.unwrap_or_else(|| account_of(&token.value));
        let settings = Self {
            phone_number_id,
            token,
            version,
            base_url,
            language,
            transport,
            account: account.into(),
            lane_rate,
            evidence,
        };
        settings.check(section.problems()).then_some(settings)
    }

    /// Where requests go.
    pub(crate) fn url(&self) -> String {
        self.config("").url()
    }

    /// Notes a token that is missing or of the wrong form, and every file that cannot be used.
    pub(crate) fn check_outside(&self, destination: &str, problems: &Collector) {
        match self.token.value.read() {
            Err(reason) => {
                let message = format!("the access token of {destination:?} is missing");
                problems.note(&self.token.span, message, reason, Some(self.token.value.remedy()));
            }
            Ok(token) => {
                let trial = WhatsappConfig::new("1", token);
                if let Err(ConfigError { key: "token", problem }) = WhatsappSink::new(trial) {
                    let message = format!("the access token of {destination:?} cannot be used");
                    problems.note(&self.token.span, message, format!("what is kept here {problem}"), None);
                }
            }
        }
        self.transport.check_outside(&self.url(), destination, problems);
    }

    /// The sink, with its token read now, and again from time to time.
    ///
    /// # Errors
    /// What cannot be used, in one line.
    pub(crate) fn sink(&self, concurrency: usize) -> Result<WhatsappSink, String> {
        let way = self.transport.complete(&self.url())?;
        let kept = self.token.value.clone();
        let config = WhatsappConfig {
            concurrency,
            ca_file: way.ca_file,
            client_identity: way.client_identity,
            proxy: way.proxy,
            ..self.config(Token::read(TOKEN_AGE, move || kept.read()))
        };
        WhatsappSink::new(config).map_err(|ConfigError { key, problem }| format!("`{key}` {problem}"))
    }

    /// What the file says itself.
    fn config(&self, token: impl Into<Token>) -> WhatsappConfig {
        let text = |found: &Option<Located<String>>, default: &str| {
            found.as_ref().map_or_else(|| default.to_owned(), |found| found.value.clone())
        };
        let way = self.transport.towards(DEFAULT_BASE_URL);
        WhatsappConfig {
            version: text(&self.version, DEFAULT_VERSION),
            base_url: text(&self.base_url, DEFAULT_BASE_URL),
            language: text(&self.language, DEFAULT_LANGUAGE),
            allow_http: way.allow_http,
            egress: way.egress,
            ..WhatsappConfig::new(self.phone_number_id.value.as_str(), token)
        }
    }

    /// Whether what the file says can be used; a mistake is noted.
    fn check(&self, problems: &Collector) -> bool {
        let Err(ConfigError { key, problem }) = self.config("").check() else { return true };
        let span = match key {
            "version" => self.version.as_ref().map(|found| &found.span),
            "base_url" => self.base_url.as_ref().map(|found| &found.span),
            "language" => self.language.as_ref().map(|found| &found.span),
            _ => None,
        };
        let span = span.unwrap_or(&self.phone_number_id.span);
        problems.note(span, format!("this `{key}` cannot be used"), format!("it {problem}"), None);
        false
    }
}

/// Numbers with the same token belong to the same account, as far as can be known from here.
fn account_of(token: &SecretRef) -> String {
    match token {
        SecretRef::Env(name) => format!("token env:{name}"),
        SecretRef::File(path) => format!("token file:{}", path.display()),
    }
}

fn read_account(section: &mut Section<'_>) -> Option<String> {
    let account = section.text("account")?;
    if account.value.is_empty() || account.value.len() > MAX_ACCOUNT_BYTES {
        let message = "this `account` cannot be used";
        let label = format!("a name has 1 to {MAX_ACCOUNT_BYTES} bytes");
        section.problems().note(&account.span, message, label, None);
        return None;
    }
    Some(account.value)
}

/// `unknown` and `evidence_wait`.
fn read_evidence(section: &mut Section<'_>, timeout: &Located<Duration>) -> EvidencePolicy {
    let without = section.choice("unknown", &WithoutEvidence::WORDS).unwrap_or_default();
    let wait = section.duration("evidence_wait", EVIDENCE_WAIT);
    let too_short = |span: &Range<usize>, wait: Duration| {
        section.problems().note(
            span,
            format!(
                "evidence_wait = {} is not longer than timeout = {}",
                show_duration(wait),
                show_duration(timeout.value)
            ),
            "counted from the beginning of the attempt",
            Some("what came of an attempt can only be in doubt once its time is over: wait longer".into()),
        );
    };
    let found = wait.as_ref().map_or(DEFAULT_EVIDENCE_WAIT, |found| found.value);
    if found <= timeout.value {
        too_short(wait.as_ref().map_or(&timeout.span, |found| &found.span), found);
    }
    EvidencePolicy { wait: found, without }
}

#[cfg(test)]
mod tests {
    use super::super::destination::DestinationConfig;
    use super::super::load::{Config, Secrets};
    use super::*;

    fn read(blocks: &str) -> Vec<DestinationConfig> {
        Config::parse("postbox.toml", blocks, Secrets::Trust).expect("accepted").destinations
    }

    fn block(name: &str, more: &str) -> String {
        format!("[[destination]]\nname = \"{name}\"\nkind = \"whatsapp\"\nphone_number_id = \"1\"\n{more}\n")
    }

    #[test]
    fn a_number_takes_its_own_messages_and_is_paced_and_waits_for_evidence() {
        let found = read(&block("support", "token = { env = \"A\" }")).remove(0);
        let destination = found.destination();
        assert_eq!(destination.route, own_route("support"));
        assert_eq!(destination.route.aggregate_types, ["whatsapp/support"]);
        assert_eq!((destination.rate, destination.lane_rate), (Some(DEFAULT_RATE), Some(DEFAULT_LANE_RATE)));
        let evidence = EvidencePolicy { wait: Duration::from_secs(120), without: WithoutEvidence::Hold };
        assert_eq!(destination.evidence, Some(evidence));
        assert_eq!(destination.retry.delays[0], Duration::from_secs(1));
    }

    #[test]
    fn numbers_with_the_same_token_share_an_account_unless_they_say_otherwise() {
        let [a, b, c, d] = [
            block("a", "token = { env = \"A\" }"),
            block("b", "token = { env = \"A\" }"),
            block("c", "token = { file = \"A\" }"),
            block("d", "token = { env = \"A\" }\naccount = \"acme\""),
        ];
        let found = read(&[a, b, c, d].concat());
        let accounts: Vec<_> = found.iter().map(|found| found.destination().account.unwrap()).collect();
        assert_eq!(accounts[0], accounts[1]);
        assert_ne!(accounts[0], accounts[2]);
        assert_eq!(&*accounts[3], "acme");
    }
}
