//! What a consumer has received, in order of `event_id`, whatever it comes from.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::iter::Peekable;

use jiff::Timestamp;
use postbox_core::inbox::{Inbox, Received};
use uuid::Uuid;

use super::comparing::PAGE;
use super::sorting::{Sorted, Sorter};
use crate::error::CommandError;

/// Longest line of a list in bytes.
const MAX_LINE_BYTES: u64 = 1_024;

/// One event at the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) event_id: Uuid,
    /// Order of acceptance.
    pub(crate) position: u64,
    /// How often it is there beyond the first time.
    pub(crate) repeats: u64,
    /// When it was accepted, where that is known.
    pub(crate) received_at: Option<Timestamp>,
}

/// A stream of receipts.
pub(crate) enum Receipts<'a> {
    Inbox {
        inbox: &'a dyn Inbox,
        consumer: &'a str,
        page: VecDeque<Received>,
        after: Option<Uuid>,
        ended: bool,
    },
    List(Box<Peekable<Sorted<24>>>),
}

impl<'a> Receipts<'a> {
    pub(crate) fn of_inbox(inbox: &'a dyn Inbox, consumer: &'a str) -> Self {
        Self::Inbox { inbox, consumer, page: VecDeque::new(), after: None, ended: false }
    }

    /// Reads a list of ids, one on each line, in order of acceptance. Empty lines, and `event_id` as a heading, are
    /// passed over.
    ///
    /// # Errors
    /// When it cannot be read, a line is no id, or the temporary directory is full.
    pub(crate) fn of_list(mut list: impl BufRead, name: &str) -> Result<Self, CommandError> {
        let mut sorter = Sorter::<24>::new();
        let (mut line, mut number) = (Vec::new(), 0_u64);
        loop {
            line.clear();
            number += 1;
            if io::Read::take(&mut list, MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = line.trim_ascii();
            if text.is_empty() || number == 1 && text == b"event_id" {
                continue;
            }
            let event_id = Uuid::try_parse_ascii(text).map_err(|_| {
                CommandError::usage(
                    format!("line {number} of {name} is no event id"),
                    "write one id on each line, in the order of acceptance; one that came twice is on two lines",
                )
            })?;
            let mut record = [0; 24];
            record[..16].copy_from_slice(event_id.as_bytes());
            record[16..].copy_from_slice(&number.to_be_bytes());
            sorter.push(record)?;
        }
        Ok(Self::List(Box::new(sorter.finish()?.peekable())))
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Receipt>, CommandError> {
        match self {
            Self::List(sorted) => next_of_list(sorted),
            Self::Inbox { inbox, consumer, page, after, ended } => {
                if page.is_empty() && !*ended {
                    *page = inbox.received(consumer, *after, PAGE).await?.into();
                    *ended = page.is_empty();
                }
                let Some(received) = page.pop_front() else { return Ok(None) };
                *after = Some(received.event_id);
                Ok(Some(Receipt {
                    event_id: received.event_id,
                    position: u64::try_from(received.position).unwrap_or_default(),
                    repeats: 0,
                    received_at: Some(received.received_at),
                }))
            }
        }
    }

    /// Whether the consumer has the event by now; `None` when the list cannot know.
    pub(crate) async fn has(&self, event_id: Uuid) -> Result<Option<bool>, CommandError> {
        let Self::Inbox { inbox, consumer, .. } = self else { return Ok(None) };
        let before = event_id.as_u128().checked_sub(1).map(Uuid::from_u128);
        let found = inbox.received(consumer, before, 1).await?;
        Ok(Some(found.first().is_some_and(|found| found.event_id == event_id)))
    }
}

fn next_of_list(sorted: &mut Peekable<Sorted<24>>) -> Result<Option<Receipt>, CommandError> {
    let Some(record) = sorted.next().transpose()? else { return Ok(None) };
    let (event_id, position) = split(&record);
    let mut receipt = Receipt { event_id, position, repeats: 0, received_at: None };
    while let Some(Ok(_)) =
        sorted.next_if(|next| next.as_ref().is_ok_and(|next| split(next).0 == receipt.event_id))
    {
        receipt.repeats += 1;
    }
    Ok(Some(receipt))
}

fn split(record: &[u8; 24]) -> (Uuid, u64) {
    let (mut id, mut position) = ([0; 16], [0; 8]);
    id.copy_from_slice(&record[..16]);
    position.copy_from_slice(&record[16..]);
    (Uuid::from_bytes(id), u64::from_be_bytes(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &str) -> Result<Vec<(u128, u64, u64)>, CommandError> {
        let mut receipts = Receipts::of_list(text.as_bytes(), "the list")?;
        let mut found = Vec::new();
        while let Some(receipt) = receipts.next().await? {
            found.push((receipt.event_id.as_u128(), receipt.position, receipt.repeats));
        }
        Ok(found)
    }

    #[tokio::test]
    async fn a_list_is_put_in_order_and_its_repeats_are_counted() {
        let id = |n: u128| Uuid::from_u128(n).to_string();
        let text = format!("event_id\n{}\n\n{}\r\n{}\n{}", id(9), id(2), id(9), id(9));
        assert_eq!(all(&text).await.unwrap(), [(2, 4, 0), (9, 2, 2)]);
        assert_eq!(all("").await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_line_that_is_no_id_is_told_by_its_number() {
        let error = all(&format!("{}\nnonsense\n", Uuid::nil())).await.unwrap_err();
        assert!(error.to_string().contains("line 2 of the list"), "{error}");
        all(&"x".repeat(5_000)).await.unwrap_err();
    }
}
