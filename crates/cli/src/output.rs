//! Writing to standard output: tables for people, JSON for programs.

use std::io::Write;

use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

use crate::error::CommandError;

/// Writes `text` and a line break.
///
/// # Errors
/// When standard output is closed or full.
pub(crate) fn say(text: impl AsRef<str>) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.as_ref())?;
    Ok(out.flush()?)
}

/// Writes `value` as indented JSON.
///
/// # Errors
/// As [`say`].
pub(crate) fn say_json<T: Serialize>(value: &T) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    say(text)
}

/// A table without lines, one row per line however long it is.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for row in rows {
        table.add_row(row.map(|cell| printable(&cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// `text` on one line, without control characters: what a producer or a receiver wrote must not drive the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_drive_the_terminal() {
        let shown = table(["a", "b"], [["x".into(), "\u{1b}[2Jy\nz".into()]]);
        assert_eq!(shown, "a  b\nx  \u{fffd}[2Jy\u{fffd}z");
    }
}
