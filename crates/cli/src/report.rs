//! How errors look on standard error.

use std::io::IsTerminal;

use miette::{MietteHandlerOpts, Report};

use crate::error::CommandError;

/// Width for logs and pipes, where a line is not broken by a window.
const UNWATCHED_WIDTH: usize = 400;

/// Decides the form of every report of this process.
pub(crate) fn install() {
    let watched = std::io::stderr().is_terminal();
    // It fails when a hook is there already, which then does as well.
    let _ = miette::set_hook(Box::new(move |_| {
        let mut options = MietteHandlerOpts::new().terminal_links(false).context_lines(1).break_words(false);
        if !watched {
            options = options.width(UNWATCHED_WIDTH).color(false);
        }
        Box::new(options.build())
    }));
}

/// Writes `error` with its causes and its remedy.
pub(crate) fn print(error: CommandError) {
    eprintln!("{:?}", Report::new(error));
}
