//! `[endpoints]`: what holds for every destination kept as data, since its address may come from anybody.

use postbox_sinks::webhook::{Egress, WebhookConfig};

use super::document::Section;
use super::problem::Collector;
use super::transport::Transport;

/// A URL that stands for any endpoint's while files are checked.
const SOME_ENDPOINT: &str = "https://endpoint.example/";

/// How endpoints are treated.
#[derive(Debug, Clone)]
pub(crate) struct EndpointsSection {
    /// Whether they are sent to; `None` when the file does not say.
    pub(crate) enabled: Option<bool>,
    transport: Transport,
}

impl Default for EndpointsSection {
    fn default() -> Self {
        Self { enabled: None, transport: Transport::within(Egress::public()) }
    }
}

impl EndpointsSection {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let enabled = section.flag("enabled");
        let transport = Transport::read(&mut section, Egress::public());
        section.finish();
        Self { enabled, transport }
    }

    /// Notes every file that cannot be used, and credentials that are missing.
    pub(super) fn check_outside(&self, problems: &Collector) {
        self.transport.check_outside(SOME_ENDPOINT, "[endpoints]", problems);
    }

    /// What a webhook to any of them begins with.
    ///
    /// # Errors
    /// Credentials that cannot be read, in one line.
    pub(crate) fn webhook(&self) -> Result<WebhookConfig, String> {
        self.transport.complete(SOME_ENDPOINT)
    }
}
