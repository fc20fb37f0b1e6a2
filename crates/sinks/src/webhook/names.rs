//! Looking names up: once per connection, so that what is vetted is what is dialled.

use std::net::SocketAddr;

use tokio::time::{Instant, timeout_at};

/// Where addresses come from.
pub(super) enum Names {
    /// The system's resolver.
    System,
    /// Answers in the order in which they are asked for.
    #[cfg(test)]
    Scripted(std::sync::Mutex<std::collections::VecDeque<Vec<SocketAddr>>>),
}

impl Names {
    /// Every address of `host`, a name or a literal, in the resolver's order; at least one.
    ///
    /// # Errors
    /// One line that says what failed.
    pub(super) async fn look_up(
        &self,
        host: &str,
        port: u16,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, String> {
        let addresses: Vec<SocketAddr> = match self {
            Self::System => timeout_at(deadline, tokio::net::lookup_host((host, port)))
                .await
                .map_err(|_| format!("looking up {host} took too long"))?
                .map_err(|error| format!("looking up {host} failed: {error}"))?
                .collect(),
            #[cfg(test)]
            Self::Scripted(answers) => answers.lock().unwrap().pop_front().unwrap_or_default(),
        };
        if addresses.is_empty() {
            return Err(format!("looking up {host} gave no address"));
        }
        Ok(addresses)
    }
}
