//! Running a command batch by batch, with a progress bar when somebody watches.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use postbox_core::event::OutboxId;
use postbox_core::operations::BatchStep;
use postbox_core::store::{StoreError, StoreErrorKind};

use crate::error::CommandError;

/// Times one batch is tried while other transactions are in its way.
const CONFLICT_TRIES: u32 = 5;

/// What a run of batches came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchRun {
    /// Rows changed.
    pub(crate) changed: u64,
    /// Whether nothing was left; otherwise the batches ran out first.
    pub(crate) done: bool,
}

/// Calls `step` with the position to continue from, until nothing is left or `max_batches` were run; with a `pace`, one
/// batch begins that long after the one before.
///
/// # Errors
/// The first error of a batch; what earlier batches did stays done.
pub(crate) async fn run_batches<F>(
    max_batches: Option<u64>,
    pace: Option<Duration>,
    bar: ProgressBar,
    mut step: impl FnMut(OutboxId) -> F,
) -> Result<BatchRun, CommandError>
where
    F: Future<Output = Result<BatchStep, StoreError>>,
{
    let mut run = BatchRun { changed: 0, done: false };
    let mut cursor: OutboxId = 0;
    let mut batches = 0;
    let mut next = pace.map(tokio::time::interval);
    while !run.done && max_batches.is_none_or(|max| batches < max) {
        if let Some(next) = &mut next {
            next.tick().await;
        }
        let found = with_conflicts_retried(|| step(cursor)).await?;
        run.changed += found.changed;
        run.done = found.done;
        cursor = found.cursor;
        batches += 1;
        bar.set_position(run.changed);
    }
    bar.finish_and_clear();
    Ok(run)
}

async fn with_conflicts_retried<F>(mut step: impl FnMut() -> F) -> Result<BatchStep, StoreError>
where
    F: Future<Output = Result<BatchStep, StoreError>>,
{
    let mut tries = 1;
    loop {
        match step().await {
            Err(error) if error.kind == StoreErrorKind::Conflict && tries < CONFLICT_TRIES => tries += 1,
            answer => return answer,
        }
    }
}

/// Whether somebody watches standard error.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// A bar on standard error up to `total`; hidden when nobody watches.
pub(crate) fn progress(total: u64, what: &str) -> ProgressBar {
    let target = if is_watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn step(changed: u64, cursor: OutboxId, done: bool) -> Result<BatchStep, StoreError> {
        Ok(BatchStep { changed, cursor, done })
    }

    #[tokio::test]
    async fn each_batch_continues_where_the_last_one_ended() {
        let seen = RefCell::new(Vec::new());
        let run = run_batches(None, None, ProgressBar::hidden(), |cursor| {
            seen.borrow_mut().push(cursor);
            std::future::ready(if cursor == 0 { step(3, 7, false) } else { step(1, 9, true) })
        });
        assert_eq!(run.await.unwrap(), BatchRun { changed: 4, done: true });
        assert_eq!(*seen.borrow(), [0, 7]);
    }

    #[tokio::test]
    async fn a_bound_on_batches_stops_it_unfinished() {
        let run = run_batches(Some(2), None, ProgressBar::hidden(), |cursor| {
            std::future::ready(step(1, cursor + 1, false))
        });
        assert_eq!(run.await.unwrap(), BatchRun { changed: 2, done: false });
    }

    #[tokio::test]
    async fn a_conflict_is_tried_again_but_not_for_ever() {
        let tries = RefCell::new(0);
        let run = run_batches(None, None, ProgressBar::hidden(), |_| {
            *tries.borrow_mut() += 1;
            std::future::ready(Err(StoreError::new(StoreErrorKind::Conflict, "in the way")))
        });
        assert!(run.await.is_err());
        assert_eq!(*tries.borrow(), CONFLICT_TRIES);
    }
}
