//! The naive form of the outbox pattern, as it is written from an article in an afternoon: one table with `status`,
//! `attempts` and `locked_until`; producers that take `MAX(seq) + 1`; workers that claim a batch of rows under a lease
//! with `FOR UPDATE SKIP LOCKED`, send them one by one and update each row in a transaction of its own.
//!
//! It is faithful, faults included, and not slowed down: statements are prepared, HTTP connections are kept alive,
//! and a partial index leads to the rows to claim. What is wrong with it is what the design is wrong about:
//!
//! - two workers split the rows of one aggregate and overtake each other; a single worker overtakes itself, because
//!   `UPDATE … RETURNING` has no order and because rows behind a failed one stay leased while newer ones do not;
//! - a claim counts as an attempt, so rows behind a failing one run out of attempts without a request;
//! - a failed row is claimable again at once, so an outage of seconds uses up all attempts;
//! - two producers of one aggregate collide on the unique sequence, and after pruning the sequence begins again at 1;
//! - a lease shorter than a batch takes delivers the batch twice;
//! - threads that share a connection share its transaction: one rollback takes back the marks of all ([`Pool`]).
//!
//! `tests/naive_faults` shows each of them, and that Postbox does not have it.

mod claims;
mod pool;
mod post;
mod producer;
mod schema;
mod worker;

pub use claims::{Claimed, Order, Settings};
pub use pool::Pool;
pub use post::{Post, PostError};
pub use producer::{NewRow, Producer};
pub use schema::migrate;
pub use worker::{Batch, Worker};
