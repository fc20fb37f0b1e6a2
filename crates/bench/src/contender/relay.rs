use super::drained::{Drained, play_apart};
use crate::Outcome;
use crate::arguments::Relay;

/// Drains in another process, to `target` or to nowhere.
pub(crate) fn drain(database_url: &str, target: Option<&str>, concurrency: u32) -> Outcome<Drained> {
    let concurrency = concurrency.to_string();
    let mut arguments = vec!["relay", "--database-url", database_url, "--concurrency", concurrency.as_str()];
    arguments.extend(target.iter().flat_map(|target| ["--target", target]));
    play_apart(&arguments)
}
pub(crate) fn play(_part: &Relay) -> Outcome<()> {
    Err("not yet".into())
}
