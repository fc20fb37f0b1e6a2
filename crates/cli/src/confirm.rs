//! Asking before many rows change.

use std::io::{BufRead, IsTerminal, Write};

use crate::error::CommandError;

/// Asks `question` on the terminal; without one the command line itself was the decision.
///
/// # Errors
/// When the answer is not yes.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<(), CommandError> {
    let stdin = std::io::stdin();
    let mut stderr = std::io::stderr();
    if yes || !stdin.is_terminal() || !stderr.is_terminal() {
        return Ok(());
    }
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandError::remains("nothing was changed", "answer y, or give --yes")),
    }
}
