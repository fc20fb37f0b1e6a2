//! The ledger for people.

use comfy_table::Table;

use crate::verdict::Verdict;

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::ASCII_MARKDOWN);
        table.set_header(["", "", "count"]);
        for (kind, count) in &self.troubles {
            table.add_row(["trouble", kind, &count.to_string()]);
        }
        let rows = [
            ("", "events committed", self.committed),
            ("", "events rolled back on purpose", self.rolled_back),
            ("", "transactions whose producer lost the database", self.producers_in_doubt),
            ("", "requests received", self.requests),
            ("", "attempts failed", self.failed_attempts),
            ("", "events delivered", self.delivered),
            ("", "events dead-lettered (refused three times)", self.dead_lettered),
            ("P1", "lost", self.lost),
            ("P1", "not finished in the database", self.unfinished),
            ("P2", "phantoms", self.phantoms),
            ("P2", "event without its change, or the reverse", self.torn),
            ("P3", "order violations", self.order_violations),
            ("P4", "dead-lettered untried", self.dead_lettered_untried),
            ("P4", "dead-lettered without being refused", self.dead_lettered_wrongly),
            ("P5", "duplicates", self.duplicates),
            ("P5", "bound: answers lost", self.bound_of_lost_answers),
            ("P5", "bound: in flight or unsettled at kills and lost leases", self.bound_of_upsets),
            ("P5", "most of these at a single one", self.largest_exposure),
            ("P5", "duplicates beyond the bound of their event", self.duplicates_unexplained),
            ("", "leases lost by living relays", self.leases_lost),
            ("", "settles refused (lease_lost), by shard", self.settles_refused),
            ("", "defects", self.defects.len()),
        ];
        for (promise, what, count) in rows {
            table.add_row([promise, what, &count.to_string()]);
        }
        writeln!(f, "{}", table.trim_fmt())?;
        match self.drained_after_seconds {
            Some(seconds) => writeln!(f, "drained {seconds:.1} s after the last trouble")?,
            None => writeln!(f, "NOT DRAINED")?,
        }
        for defect in &self.defects {
            writeln!(f, "defect: {defect}")?;
        }
        write!(f, "seed {}: {}", self.seed, if self.adds_up() { "it adds up" } else { "IT DOES NOT ADD UP" })
    }
}
