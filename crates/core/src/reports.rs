//! What a destination reports later of a message that it took: the seam to the database.
//!
//! A report is believed for the signature of the call that brought it, which is checked before it comes here. Reports come
//! late, twice, in any order, and before the relay has recorded the attempt that they speak of.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::callback::CallbackMark;
use crate::store::StoreResult;

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageStatus {
    /// On its way.
    Sent,
    /// Given up after it was taken.
    Failed,
    /// On a device.
    Delivered,
    /// Shown there.
    Read,
}

impl MessageStatus {
    /// All of them, each further than those before it: a message that is on a device has not failed, whatever is said later.
    pub const ALL: [Self; 4] = [Self::Sent, Self::Failed, Self::Delivered, Self::Read];

    /// The word for it, stored in `outbox_report.status` and used in event types (`whatsapp.status.failed`).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
            Self::Read => "read",
        }
    }

    /// The one that `word` means, if there is one.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageReport {
    /// The destination's own name for the message (a `wamid`): 1 to 512 printable ASCII characters.
    pub external_id: String,
    /// The mark that the request carried, when it comes back and is one of ours.
    pub mark: Option<CallbackMark>,
    /// How far it has come.
    pub status: MessageStatus,
    /// When, by the destination's clock.
    pub at: Timestamp,
    /// Why it failed: a code and one line, without anything of a person.
    pub error: Option<(i32, String)>,
}

/// How reports are taken in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportPolicy {
    /// Destinations that the reports may be about.
    pub destinations: Vec<String>,
    /// Steps forward that write an event, `whatsapp.status.<word>`, in the same transaction.
    pub follow_ups: Vec<MessageStatus>,
}

/// What became of some reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ReportsTaken {
    /// Reports that were new.
    pub recorded: u32,
    /// Reports that had been recorded before.
    pub repeated: u32,
    /// New ones whose event is not known (yet).
    pub unmatched: u32,
    /// Deliveries that they settled as delivered.
    pub resolved: u32,
    /// Events that they wrote.
    pub enqueued: u32,
}

/// A report in an event's story.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ReportStory {
    /// The destination's name for the message.
    pub external_id: String,
    /// The attempt that brought it, when the report says so.
    pub attempt: Option<u32>,
    /// How far it has come.
    pub status: String,
    /// When, by the destination's clock.
    pub at: Timestamp,
    /// Why it failed.
    pub error: Option<String>,
}

/// The database as whoever hears reports uses it.
///
/// # Contract
/// - **One call, one transaction.** After `Ok` everything is durable, after an error nothing is; a call may be repeated.
/// - **Once.** Of each message each status is recorded once. It is a *step* when no status recorded before is as far.
/// - **Evidence.** A report whose mark names an attempt that was made, or begun, of a delivery that is unfinished, or that was
///   given up in doubt, settles that delivery as delivered under its name for the message, and its lane goes on. What is
///   delivered, discarded or otherwise terminal is not touched.
/// - **Follow-ups.** Each step that the policy names writes one event: of the aggregate of the event that the message's own names
///   as its origin ([`ORIGIN_HEADER`]), or of the type `whatsapp.status` and the same id.
/// - A report that fits no event is kept, and shown with its event once a receipt bears its name.
#[async_trait]
pub trait Reports: Send + Sync {
    /// Takes in what one call brought.
    async fn take_in(&self, reports: &[MessageReport], policy: &ReportPolicy) -> StoreResult<ReportsTaken>;
}

/// The stored header by which a message's event names the event of the business that it was written for.
pub const ORIGIN_HEADER: &str = "postbox-origin";
