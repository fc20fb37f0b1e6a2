//! Hearing of new events before the next poll.

mod announcing;
mod notify;

pub use notify::NotifyWakeUp;
