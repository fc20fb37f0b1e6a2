//! How a webhook's requests travel: which addresses they may reach, whose certificates count, through which proxy.

use std::path::PathBuf;

use postbox_sinks::webhook::{ClientIdentity, ConfigError, Egress, ProxyConfig, WebhookConfig, WebhookSink};
use secrecy::SecretString;
use toml::de::DeValue;

use super::document::{Located, Section};
use super::problem::Collector;
use super::secret::{SecretRef, reference};

/// A URL that needs no certificates, for trying out everything else.
pub(super) const ANY_URL: &str = "http://localhost/";

/// What a destination says about the way.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    allow_http: bool,
    egress: Egress,
    ca_file: Option<Located<PathBuf>>,
    client: Option<Client>,
    proxy: Option<Proxy>,
}

/// A certificate to show.
#[derive(Debug, Clone)]
struct Client {
    certificate: Located<PathBuf>,
    key: Located<PathBuf>,
}

/// A proxy to go through.
#[derive(Debug, Clone)]
struct Proxy {
    url: Located<String>,
    credentials: Option<Located<SecretRef>>,
}

impl Transport {
    /// Direct, with the system's certificates, to nothing but what `egress` allows.
    pub(super) fn within(egress: Egress) -> Self {
        Self { allow_http: false, egress, ca_file: None, client: None, proxy: None }
    }

    /// Reads the keys; `egress` holds when the file does not say.
    pub(super) fn read(section: &mut Section<'_>, egress: Egress) -> Self {
        Self {
            allow_http: section.flag("allow_http").unwrap_or(false),
            egress: read_egress(section).unwrap_or(egress),
            ca_file: path(section, "ca_file"),
            client: read_client(section),
            proxy: read_proxy(section),
        }
    }

    /// A webhook to `url` that travels this way, without what is kept outside of the file.
    pub(super) fn towards(&self, url: &str) -> WebhookConfig {
        WebhookConfig { allow_http: self.allow_http, egress: self.egress.clone(), ..WebhookConfig::new(url) }
    }

    /// The same with everything, credentials read now.
    ///
    /// # Errors
    /// What cannot be read, in one line.
    pub(super) fn complete(&self, url: &str) -> Result<WebhookConfig, String> {
        let credentials =
            |proxy: &Proxy| proxy.credentials.as_ref().map(|kept| kept.value.read()).transpose();
        let proxy = self.proxy.as_ref().map(|proxy| Ok((proxy, credentials(proxy)?))).transpose();
        let proxy = proxy.map_err(|problem: String| problem)?;
        Ok(self.with_outside(url, proxy))
    }

    fn with_outside(&self, url: &str, proxy: Option<(&Proxy, Option<SecretString>)>) -> WebhookConfig {
        WebhookConfig {
            ca_file: self.ca_file.as_ref().map(|file| file.value.clone()),
            client_identity: self.client.as_ref().map(|client| ClientIdentity {
                certificate: client.certificate.value.clone(),
                key: client.key.value.clone(),
            }),
            proxy: proxy
                .map(|(proxy, credentials)| ProxyConfig { url: proxy.url.value.clone(), credentials }),
            ..self.towards(url)
        }
    }

    /// Notes every file that cannot be used, and credentials that are missing or of the wrong form.
    pub(super) fn check_outside(&self, url: &str, destination: &str, problems: &Collector) {
        let credentials = self.proxy.as_ref().and_then(|proxy| proxy.credentials.as_ref());
        let read = credentials.map(|kept| (kept, kept.value.read()));
        if let Some((kept, Err(reason))) = &read {
            let message = format!("the credentials for the proxy of {destination:?} are missing");
            problems.note(&kept.span, message, reason.clone(), Some(kept.value.remedy()));
        }
        let found = read.and_then(|(_, read)| read.ok());
        let trial = self.with_outside(url, self.proxy.as_ref().map(|proxy| (proxy, found)));
        if let Err(ConfigError { key, problem }) = WebhookSink::new(trial)
            && let Some(span) = self.span(key)
        {
            problems.note(&span, format!("`{key}` of {destination:?} cannot be used"), problem, None);
        }
    }

    /// Where the key is that a sink complains of, when it is one of these.
    fn span(&self, key: &str) -> Option<std::ops::Range<usize>> {
        match key {
            "ca_file" => self.ca_file.as_ref().map(|file| file.span.clone()),
            "client_certificate" => self.client.as_ref().map(|client| client.certificate.span.clone()),
            "client_key" => self.client.as_ref().map(|client| client.key.span.clone()),
            "proxy_credentials" => {
                self.proxy.as_ref()?.credentials.as_ref().map(|credentials| credentials.span.clone())
            }
            _ => None,
        }
    }
}

fn path(section: &mut Section<'_>, key: &'static str) -> Option<Located<PathBuf>> {
    section.text(key).map(|path| Located { value: PathBuf::from(path.value), span: path.span })
}

/// One word, or a list of words and networks.
fn read_egress(section: &mut Section<'_>) -> Option<Egress> {
    let value = section.value("egress")?;
    let words: Vec<String> = match value.get_ref() {
        DeValue::Array(items) => items
            .iter()
            .map(|item| section.as_text("egress", item).map(|word| word.value))
            .collect::<Option<_>>()?,
        _ => vec![section.as_text("egress", value)?.value],
    };
    match Egress::listed(words.iter().map(String::as_str)) {
        Ok(egress) => Some(egress),
        Err(error) => {
            let help = "\"public\" (the internet and nothing else), \"unrestricted\", or a list such as \
                        [\"public\", \"10.1.0.0/16\"]";
            section.problems().note(
                &value.span(),
                "`egress` is no policy",
                error.to_string(),
                Some(help.into()),
            );
            None
        }
    }
}

fn read_client(section: &mut Section<'_>) -> Option<Client> {
    match (path(section, "client_certificate"), path(section, "client_key")) {
        (Some(certificate), Some(key)) => Some(Client { certificate, key }),
        (Some(found), None) if !section.has("client_key") => {
            alone(section, &found, "client_certificate", "client_key");
            None
        }
        (None, Some(found)) if !section.has("client_certificate") => {
            alone(section, &found, "client_key", "client_certificate");
            None
        }
        _ => None,
    }
}

fn alone(section: &Section<'_>, found: &Located<PathBuf>, there: &str, missing: &str) {
    section.problems().note(
        &found.span,
        format!("`{there}` needs `{missing}`"),
        "alone",
        Some(format!("name the other file with {missing} = \"/path/to/file.pem\"")),
    );
}

fn read_proxy(section: &mut Section<'_>) -> Option<Proxy> {
    let url = section.text("proxy");
    let credentials = section.value("proxy_credentials");
    let credentials = credentials.and_then(|value| reference(section, "proxy_credentials", value));
    let Some(url) = url else {
        if let Some(span) = section.key_span("proxy_credentials").filter(|_| !section.has("proxy")) {
            let message = "`proxy_credentials` needs `proxy`";
            section.problems().note(&span, message, "for which proxy?", None);
        }
        return None;
    };
    let trial = ProxyConfig { url: url.value.clone(), credentials: None };
    let trial = WebhookConfig { proxy: Some(trial), ..WebhookConfig::new(ANY_URL) };
    if let Err(error) = WebhookSink::new(trial) {
        section.problems().note(
            &url.span,
            "this `proxy` cannot be used",
            format!("it {}", error.problem),
            None,
        );
        return None;
    }
    Some(Proxy { url, credentials })
}
