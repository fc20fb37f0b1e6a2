//! A thread with a connection of its own, so that SQLite's blocking calls never stop the async runtime.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};
use rusqlite::{Connection, InterruptHandle};
use tokio::sync::{mpsc, oneshot};

use super::connection::{self, Missing};
use super::failure::{Attempt, explain};

/// Calls that may wait for one thread; further callers wait for room.
const QUEUE: usize = 64;

/// Longest time of one call of the relay, the wait for the thread included.
pub(crate) const CALL_BOUND: Duration = Duration::from_secs(30);

/// How long a call is repeated while another program holds the lock; with a last wait of SQLite's busy timeout it
/// stays inside [`CALL_BOUND`].
const BUSY_BOUND: Duration = Duration::from_secs(20);

type Job = Box<dyn FnOnce(&mut Seat) + Send>;

/// One role's thread. It starts with the first call, and anew when it was given up or died.
pub(crate) struct Worker {
    role: &'static str,
    path: PathBuf,
    missing: Missing,
    thread: Mutex<Option<Thread>>,
}

#[derive(Clone)]
struct Thread {
    jobs: mpsc::Sender<Job>,
    interrupt: Arc<Mutex<Option<InterruptHandle>>>,
}

/// What the thread works with.
struct Seat {
    path: PathBuf,
    missing: Missing,
    connection: Option<Connection>,
    interrupt: Arc<Mutex<Option<InterruptHandle>>>,
}

impl Worker {
    pub(crate) fn new(role: &'static str, path: &Path, missing: Missing) -> Self {
        Self { role, path: path.to_owned(), missing, thread: Mutex::new(None) }
    }

    /// Does `work` on the thread and waits for its answer, for [`CALL_BOUND`] at most.
    pub(crate) async fn call<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Fn(&mut Connection, &Path) -> Attempt<T> + Send + 'static,
    {
        let thread = self.thread()?;
        match tokio::time::timeout(CALL_BOUND, hand_over(&thread, work)).await {
            Ok(answer) => answer.unwrap_or_else(|| Err(self.died())),
            Err(_) => {
                self.give_up(&thread);
                Err(StoreError::new(
                    StoreErrorKind::Unavailable,
                    format!(
                        "{}: no answer within {} s; it may have been done",
                        self.path.display(),
                        CALL_BOUND.as_secs()
                    ),
                ))
            }
        }
    }

    /// Like [`Self::call`], for as long as it takes.
    pub(crate) async fn call_unbounded<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Fn(&mut Connection, &Path) -> Attempt<T> + Send + 'static,
    {
        let thread = self.thread()?;
        hand_over(&thread, work).await.unwrap_or_else(|| Err(self.died()))
    }

    fn thread(&self) -> StoreResult<Thread> {
        let mut current = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = current.as_ref().filter(|thread| !thread.jobs.is_closed()) {
            return Ok(thread.clone());
        }
        let (jobs, queue) = mpsc::channel(QUEUE);
        let interrupt = Arc::default();
        let seat = Seat {
            path: self.path.clone(),
            missing: self.missing,
            connection: None,
            interrupt: Arc::clone(&interrupt),
        };
        std::thread::Builder::new()
            .name(format!("sqlite-{}", self.role))
            .spawn(move || run(queue, seat))
            .map_err(|error| {
                StoreError::caused(
                    StoreErrorKind::Unavailable,
                    "no thread could be started for SQLite",
                    error,
                )
            })?;
        Ok(current.insert(Thread { jobs, interrupt }).clone())
    }

    /// Leaves a thread that does not answer to itself: it ends when its statement does.
    fn give_up(&self, thread: &Thread) {
        let mut current = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|newest| newest.jobs.same_channel(&thread.jobs)) {
            *current = None;
        }
        if let Some(handle) = &*thread.interrupt.lock().unwrap_or_else(PoisonError::into_inner) {
            handle.interrupt();
        }
    }

    fn died(&self) -> StoreError {
        StoreError::new(
            StoreErrorKind::Unavailable,
            format!("{}: the thread for {} ended without an answer", self.path.display(), self.role),
        )
    }
}

/// `None` when the thread ended without an answer.
async fn hand_over<T, F>(thread: &Thread, work: F) -> Option<StoreResult<T>>
where
    T: Send + 'static,
    F: Fn(&mut Connection, &Path) -> Attempt<T> + Send + 'static,
{
    let (answer, answered) = oneshot::channel();
    let job: Job = Box::new(move |seat| {
        // Nobody waits any more when the caller's time was up.
        let _ = answer.send(seat.perform(&work));
    });
    thread.jobs.send(job).await.ok()?;
    answered.await.ok()
}

fn run(mut queue: mpsc::Receiver<Job>, mut seat: Seat) {
    while let Some(job) = queue.blocking_recv() {
        job(&mut seat);
    }
}

impl Seat {
    /// Does `work`, again and again while another program holds the lock.
    fn perform<T>(&mut self, work: &dyn Fn(&mut Connection, &Path) -> Attempt<T>) -> StoreResult<T> {
        let begun = Instant::now();
        loop {
            let path = self.path.clone();
            let connection = self.connect()?;
            match work(connection, &path) {
                Ok(done) => return Ok(done),
                Err(failure) if failure.is_busy() && begun.elapsed() < BUSY_BOUND => {
                    // Some locks are reported at once, without the busy timeout.
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(failure) => {
                    let error = explain(failure, connection, &path);
                    if error.kind == StoreErrorKind::Unavailable {
                        self.disconnect();
                    }
                    return Err(error);
                }
            }
        }
    }

    fn connect(&mut self) -> StoreResult<&mut Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connection = connection::open(&self.path, self.missing)?;
                *self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(connection.get_interrupt_handle());
                connection
            }
        };
        Ok(self.connection.insert(connection))
    }

    fn disconnect(&mut self) {
        *self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.connection = None;
    }
}
