//! Keep-alive connections that wait for their next request.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::dial::Sender;

/// A connection that waited longer is not used again. Below the time after which common servers close (60–75 s) and
/// after which NAT and load balancers forget silently (350 s).
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Idle connections of one destination. The one used last is taken first, so that as few as needed stay warm.
pub(super) struct Pool {
    idle: Mutex<Vec<Idle>>,
    capacity: usize,
}

struct Idle {
    sender: Sender,
    since: Instant,
}

impl Pool {
    pub(super) fn new(capacity: usize) -> Self {
        Self { idle: Mutex::new(Vec::new()), capacity }
    }

    /// A connection that is open and ready as far as can be known from here, if there is one.
    pub(super) async fn take(&self, deadline: Instant) -> Option<Sender> {
        loop {
            let mut sender = self.pop()?;
            if sender.is_ready() {
                return Some(sender);
            }
            // Its last answer was read to the end, but its task may not have been polled since.
            match timeout_at(deadline, sender.ready()).await {
                Ok(Ok(())) => return Some(sender),
                Ok(Err(_)) => {}
                Err(_) => return None,
            }
        }
    }

    /// Keeps `sender`, whose last answer was read to the end, for the next request.
    pub(super) fn put(&self, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The oldest are in front.
        let expired = idle.partition_point(|waiting| now.duration_since(waiting.since) > IDLE_TIMEOUT);
        idle.drain(..expired);
        if idle.len() < self.capacity {
            idle.push(Idle { sender, since: now });
        }
    }

    fn pop(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = idle.pop()?;
        if newest.since.elapsed() > IDLE_TIMEOUT {
            idle.clear();
            return None;
        }
        Some(newest.sender)
    }
}
