//! Looking names up: once per connection, so that what is vetted is what is dialled.
//!
//! Look-ups of one name that come while one is on its way share its answer. The system's resolver takes a thread for as
//! long as it waits for a name server, which may be far longer than an attempt; without sharing, one endpoint with a dead
//! name server would take the threads that all the others need.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// An answer that may not be there yet.
type Flight = watch::Receiver<Option<Result<Vec<SocketAddr>, String>>>;

/// The addresses of one host.
pub(super) struct Names {
    host: Arc<str>,
    port: u16,
    source: Source,
    flight: Mutex<Option<Flight>>,
}

/// Where addresses come from.
#[derive(Clone)]
enum Source {
    /// The system's resolver.
    System,
    /// Answers in the order in which they are asked for.
    #[cfg(test)]
    Scripted(Arc<Mutex<std::collections::VecDeque<Vec<SocketAddr>>>>),
}

impl Names {
    /// The addresses of `host`, a name or a literal, as the system knows them.
    pub(super) fn of(host: &str, port: u16) -> Self {
        Self { host: host.into(), port, source: Source::System, flight: Mutex::default() }
    }

    /// The same host with these answers.
    #[cfg(test)]
    pub(super) fn scripted(self, answers: impl IntoIterator<Item = Vec<SocketAddr>>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { source: Source::Scripted(answers), ..self }
    }

    /// Every address, in the resolver's order; at least one.
    ///
    /// # Errors
    /// One line that says what failed.
    pub(super) async fn look_up(&self, deadline: Instant) -> Result<Vec<SocketAddr>, String> {
        let host = &self.host;
        let mut flight = self.board();
        let landed = timeout_at(deadline, flight.wait_for(Option::is_some))
            .await
            .map_err(|_| format!("looking up {host} took too long"))?
            .map_err(|_| format!("looking up {host} was broken off"))?;
        landed.clone().unwrap_or_else(|| Err(format!("looking up {host} gave no answer")))
    }

    /// The look-up that is on its way, or a new one.
    fn board(&self) -> Flight {
        let mut flight = self.flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(on_its_way) = flight.as_ref().filter(|flight| is_on_its_way(flight)) {
            return on_its_way.clone();
        }
        let (land, started) = watch::channel(None);
        let (source, host, port) = (self.source.clone(), Arc::clone(&self.host), self.port);
        // On its own, so that it outlives an attempt that gives up, and its thread is not taken a second time.
        tokio::spawn(async move { land.send_replace(Some(source.resolve(&host, port).await)) });
        flight.insert(started).clone()
    }
}

/// Whether it has not landed, and will.
fn is_on_its_way(flight: &Flight) -> bool {
    flight.borrow().is_none() && flight.has_changed().is_ok()
}

impl Source {
    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let addresses: Vec<SocketAddr> = match self {
            Self::System => tokio::net::lookup_host((host, port))
                .await
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn answer(last: u8) -> Vec<SocketAddr> {
        vec![SocketAddr::from(([127, 0, 0, last], 80))]
    }

    #[tokio::test]
    async fn look_ups_that_come_together_are_one_and_later_ones_ask_anew() {
        let names = Names::of("shop.example", 80).scripted([answer(1), answer(2)]);
        let deadline = Instant::now() + Duration::from_secs(60);
        let (one, other) = tokio::join!(names.look_up(deadline), names.look_up(deadline));
        assert_eq!((one.unwrap(), other.unwrap()), (answer(1), answer(1)));
        assert_eq!(names.look_up(deadline).await.unwrap(), answer(2));
    }

    #[tokio::test]
    async fn an_attempt_that_gives_up_leaves_the_look_up_to_the_others() {
        let names = Names::of("shop.example", 80).scripted([answer(1)]);
        let (late, patient) = tokio::join!(
            names.look_up(Instant::now()),
            names.look_up(Instant::now() + Duration::from_secs(60))
        );
        assert!(late.is_err() || late == Ok(answer(1)));
        assert_eq!(patient.unwrap(), answer(1));
    }

    #[test]
    fn a_look_up_that_went_down_with_its_runtime_is_made_again() {
        let names = Names::of("shop.example", 80).scripted([answer(1)]);
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // Started, and never given the time to land.
        runtime().block_on(async { drop(names.board()) });
        let found =
            runtime().block_on(async { names.look_up(Instant::now() + Duration::from_secs(60)).await });
        assert_eq!(found.unwrap(), answer(1));
    }
}
