//! What the demo tells while it goes on: on standard error, so that standard output holds the ledger alone.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// Tells what happens, and shows how far the shop has come when somebody watches.
#[derive(Debug)]
pub(super) struct Narration {
    began: Instant,
    bar: ProgressBar,
}

impl Narration {
    pub(super) fn begin(orders: u64) -> Self {
        let bar = ProgressBar::new(orders);
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} orders, {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { began: Instant::now(), bar }
    }

    pub(super) fn tell(&self, text: &str) {
        let line = format!("{:5.1} s  {text}", self.began.elapsed().as_secs_f64());
        // Hides the bar while the line is written; without a terminal there is no bar.
        self.bar.suspend(|| eprintln!("{line}"));
    }

    pub(super) fn progress(&self, orders: u64, delivered: u64) {
        self.bar.set_message(format!("{delivered} events delivered"));
        self.bar.set_position(orders);
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
