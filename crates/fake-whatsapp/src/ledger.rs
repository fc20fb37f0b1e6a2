//! What was taken: people's phones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use postbox_core::callback::CallbackMark;
use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

/// A message that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub wamid: String,
    /// The recipient: the digits of a number, or the id of a person or a group.
    pub to: String,
    /// Postbox's mark, if it carries one.
    pub mark: Option<CallbackMark>,
    /// The request.
    pub body: Value,
}

/// Every message that was taken, in order.
#[derive(Debug)]
pub struct Ledger {
    messages: Mutex<Vec<Message>>,
    count: watch::Sender<usize>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self { messages: Mutex::default(), count: watch::Sender::new(0) }
    }

    pub(crate) fn take(&self, message: Message) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(message);
        self.count.send_replace(messages.len());
    }

    /// All of them.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those on the phone of `to`, a number in digits.
    #[must_use]
    pub fn phone(&self, to: &str) -> Vec<Message> {
        self.messages().into_iter().filter(|message| message.to == to).collect()
    }

    /// How many messages each event became on each phone: more than one is what a person sees twice.
    #[must_use]
    pub fn per_event(&self) -> BTreeMap<(String, Uuid), usize> {
        let mut counts = BTreeMap::new();
        for message in self.messages() {
            if let Some(mark) = message.mark {
                *counts.entry((message.to, mark.event_id)).or_default() += 1;
            }
        }
        counts
    }

    /// How many messages `event_id` became on the phone of `to`.
    #[must_use]
    pub fn copies(&self, to: &str, event_id: Uuid) -> usize {
        self.per_event().get(&(to.to_owned(), event_id)).copied().unwrap_or_default()
    }

    /// Waits until `count` messages were taken.
    pub async fn wait_for(&self, count: usize) {
        let mut taken = self.count.subscribe();
        // The sender is in `self`, so the wait cannot fail.
        let _ = taken.wait_for(|taken| *taken >= count).await;
    }
}
