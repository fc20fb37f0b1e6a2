//! The merge of both sides.

use std::collections::VecDeque;

use indicatif::ProgressBar;
use jiff::{SignedDuration, Timestamp};
use postbox_core::inbox::Retention;
use postbox_core::outgoing::{Outgoing, Sent, Standing};
use uuid::Uuid;

use super::ordering::Ordering;
use super::receipts::{Receipt, Receipts};
use super::report::Comparison;
use crate::error::CommandError;

/// Rows read at once from either side.
pub(super) const PAGE: u32 = 5_000;

/// The sides are read while both of them work. What was confirmed or received this shortly before the start, or later,
/// is looked at a second time before it counts as a finding; the allowance is for clocks that disagree.
const STILL_MOVING: SignedDuration = SignedDuration::from_mins(5);

/// What to compare.
pub(crate) struct Question<'a> {
    pub(crate) outgoing: &'a dyn Outgoing,
    pub(crate) destination: &'a str,
    /// Whether the destination promises order.
    pub(crate) ordered: bool,
    /// Judge events written at or after.
    pub(crate) since: Option<Timestamp>,
    /// Judge events written before.
    pub(crate) until: Option<Timestamp>,
    /// What the inbox's pruning left.
    pub(crate) inbox_retention: Option<Retention>,
    /// Events named for each kind of finding.
    pub(crate) named: usize,
}

/// Compares what was sent with `receipts`.
///
/// # Errors
/// When a side cannot be read, or the temporary directory is full.
pub(crate) async fn compare(
    question: &Question<'_>,
    receipts: Receipts<'_>,
    consumer: &str,
    bar: &ProgressBar,
) -> Result<Comparison, CommandError> {
    let mut merge = Merge {
        question,
        receipts,
        outbox: Outbox { question, page: VecDeque::new(), after: None, ended: false },
        complete_since: question.outgoing.outbox_retention().await?.map(|kept| kept.complete_since),
        still_moving: Timestamp::now() - STILL_MOVING,
        ordering: Ordering::new(),
        found: Comparison {
            destination: question.destination.to_owned(),
            consumer: consumer.to_owned(),
            ..Comparison::default()
        },
    };
    merge.run(bar).await?;
    let Merge { mut found, ordering, .. } = merge;
    if question.ordered {
        ordering.judge(|event| found.out_of_order.add(event, question.named))?;
    }
    Ok(found)
}

struct Merge<'a> {
    question: &'a Question<'a>,
    receipts: Receipts<'a>,
    outbox: Outbox<'a>,
    /// The outbox still has everything that was written since.
    complete_since: Option<Timestamp>,
    still_moving: Timestamp,
    ordering: Ordering,
    found: Comparison,
}

impl Merge<'_> {
    async fn run(&mut self, bar: &ProgressBar) -> Result<(), CommandError> {
        let (mut sent, mut receipt) = (self.outbox.next().await?, self.receipts.next().await?);
        loop {
            match (sent, receipt) {
                (Some(out), Some(in_)) if out.event_id == in_.event_id => {
                    self.both(&out, &in_)?;
                    (sent, receipt) = (self.outbox.next().await?, self.receipts.next().await?);
                    bar.inc(1);
                }
                (Some(out), None) => {
                    self.sent_only(&out).await?;
                    sent = self.outbox.next().await?;
                    bar.inc(1);
                }
                (Some(out), Some(in_)) if out.event_id < in_.event_id => {
                    self.sent_only(&out).await?;
                    sent = self.outbox.next().await?;
                    bar.inc(1);
                }
                (_, Some(in_)) => {
                    self.received_only(&in_).await?;
                    receipt = self.receipts.next().await?;
                }
                (None, None) => return Ok(()),
            }
        }
    }

    fn both(&mut self, sent: &Sent, receipt: &Receipt) -> Result<(), CommandError> {
        if !self.asked_for(sent.created_at) {
            return Ok(());
        }
        self.count_receipt(receipt);
        match sent.standing {
            Standing::Delivered => self.found.delivered += 1,
            Standing::Open => self.found.open += 1,
            Standing::GivenUp => {}
            Standing::NotRouted => {
                self.found.extra.add(sent.event_id, self.question.named);
                return Ok(());
            }
        }
        Ok(self.ordering.note(sent.lane_id, sent.sequence, receipt.position, sent.event_id)?)
    }

    async fn sent_only(&mut self, sent: &Sent) -> Result<(), CommandError> {
        if !self.asked_for(sent.created_at) {
            return Ok(());
        }
        match sent.standing {
            Standing::Delivered => {}
            Standing::Open => {
                self.found.open += 1;
                return Ok(());
            }
            Standing::GivenUp => {
                self.found.given_up += 1;
                return Ok(());
            }
            Standing::NotRouted => return Ok(()),
        }
        self.found.delivered += 1;
        let forgotten = self.question.inbox_retention.map(|kept| kept.complete_since);
        if forgotten.is_some_and(|since| sent.created_at < since) {
            self.found.beyond_memory += 1;
        } else if sent.sent_at.is_some_and(|at| at >= self.still_moving)
            && self.receipts.has(sent.event_id).await? == Some(true)
        {
            self.found.received += 1;
        } else {
            self.found.missing.add(sent.event_id, self.question.named);
        }
        Ok(())
    }

    async fn received_only(&mut self, receipt: &Receipt) -> Result<(), CommandError> {
        let known = written_at_the_latest(receipt);
        // A list says nothing of when, and many an event of it may lie outside of what was asked for.
        let bounded = self.question.since.is_some() || self.question.until.is_some();
        if known.map_or(bounded, |at| !self.asked_for(at)) {
            return Ok(());
        }
        self.count_receipt(receipt);
        let pruned = self.complete_since.is_some_and(|since| known.is_none_or(|at| at < since));
        if pruned {
            self.found.beyond_memory += 1;
        } else if !(self.moves(receipt) && self.outbox.has(receipt.event_id).await?) {
            self.found.extra.add(receipt.event_id, self.question.named);
        }
        Ok(())
    }

    /// A list was complete before the outbox was read, so what it names cannot have come in between.
    fn moves(&self, receipt: &Receipt) -> bool {
        receipt.received_at.is_some_and(|at| at >= self.still_moving)
    }

    fn count_receipt(&mut self, receipt: &Receipt) {
        self.found.received += 1;
        if receipt.repeats > 0 {
            self.found.duplicated.add(receipt.event_id, self.question.named);
        }
    }

    fn asked_for(&self, at: Timestamp) -> bool {
        self.question.since.is_none_or(|since| at >= since)
            && self.question.until.is_none_or(|until| at < until)
    }
}

/// An event was written before it was received; an id of version 7 says it more exactly.
fn written_at_the_latest(receipt: &Receipt) -> Option<Timestamp> {
    let by_id = receipt.event_id.get_timestamp().filter(|_| receipt.event_id.get_version_num() == 7);
    let by_id = by_id.and_then(|at| {
        let (seconds, nanoseconds) = at.to_unix();
        Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanoseconds).ok()?).ok()
    });
    by_id.into_iter().chain(receipt.received_at).min()
}

/// The outbox's side, page by page.
struct Outbox<'a> {
    question: &'a Question<'a>,
    page: VecDeque<Sent>,
    after: Option<Uuid>,
    ended: bool,
}

impl Outbox<'_> {
    async fn next(&mut self) -> Result<Option<Sent>, CommandError> {
        let Question { outgoing, destination, .. } = self.question;
        if self.page.is_empty() && !self.ended {
            self.page = outgoing.sent(destination, self.after, PAGE).await?.into();
            self.ended = self.page.is_empty();
        }
        let sent = self.page.pop_front();
        if let Some(sent) = &sent {
            self.after = Some(sent.event_id);
        }
        Ok(sent)
    }

    /// Whether the outbox has the event by now, for this destination.
    async fn has(&self, event_id: Uuid) -> Result<bool, CommandError> {
        let Question { outgoing, destination, .. } = self.question;
        let before = event_id.as_u128().checked_sub(1).map(Uuid::from_u128);
        let found = outgoing.sent(destination, before, 1).await?;
        Ok(found
            .first()
            .is_some_and(|sent| sent.event_id == event_id && sent.standing != Standing::NotRouted))
    }
}
