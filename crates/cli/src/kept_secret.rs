//! Secrets that a command line names by their place, since everybody on the machine can see the command line.

use secrecy::SecretString;

use crate::config::SecretRef;
use crate::error::CommandError;

/// The secret kept at `place` (`env:NAME` or `file:PATH`), which `option` gives.
///
/// # Errors
/// When `place` is none, or holds nothing. Nothing that was given is repeated: it may be the secret itself.
pub(crate) fn read_at(option: &str, place: &str) -> Result<SecretString, CommandError> {
    let Some(kept) = SecretRef::named(place) else {
        return Err(CommandError::usage(
            format!("{option} says where a secret is kept, and this is no such place"),
            "write env:NAME or file:PATH; everybody on this machine can see the command line",
        ));
    };
    kept.read().map_err(|reason| {
        CommandError::usage(format!("the secret for {option} is missing: {reason}"), kept.remedy())
    })
}
