//! Comparing what an outbox has sent with what a consumer has received.
//!
//! Both sides are read in order of `event_id` and merged, page by page (`comparing`). What both have goes, with its
//! aggregate, sequence and order of acceptance, through a sorter on disk (`sorting`) and is then read lane by lane, so
//! that what was accepted out of order shows (`ordering`). A list of ids from a file is put in order by the same sorter
//! (`receipts`). Nothing grows in memory with the number of events.

mod comparing;
mod ordering;
mod receipts;
mod report;
mod sorting;

pub(crate) use comparing::{Question, compare};
pub(crate) use receipts::Receipts;
pub(crate) use report::Comparison;
