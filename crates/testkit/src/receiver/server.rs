//! The receiver itself.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::answer::{Answer, Script};
use super::connection;
use super::record::{Received, RecordFile};
use super::tls::{ClientFiles, Identity};
use super::wire::Wire;
use crate::ledger::{Entry, Moment};

/// What is kept of the requests.
#[derive(Debug)]
pub enum Recording {
    /// Everything, in memory.
    Memory,
    /// A line per event in a file; nothing in memory.
    File(RecordFile),
    /// Their number.
    Count,
}

/// A receiver on a free port of 127.0.0.1; dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
    identity: Option<Arc<Identity>>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("ca_file", &self.ca_file).finish_non_exhaustive()
    }
}

impl Receiver {
    /// A receiver that answers by `script` and remembers everything.
    pub async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of 127.0.0.1 can be bound");
        Self::serve(listener, script, Recording::Memory, None)
    }

    /// The same over TLS, with a certificate of its own: see [`Self::ca_file`].
    pub async fn start_tls(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of 127.0.0.1 can be bound");
        Self::serve(listener, script, Recording::Memory, Some(Arc::new(Identity::new())))
    }

    /// The same, which takes no client without the certificate that it names: see [`Self::client_files`].
    pub async fn start_mutual_tls(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of 127.0.0.1 can be bound");
        Self::serve(listener, script, Recording::Memory, Some(Arc::new(Identity::mutual())))
    }

    /// A receiver on `listener` that keeps what `recording` says.
    #[must_use]
    pub fn on(listener: TcpListener, script: Script, recording: Recording) -> Self {
        Self::serve(listener, script, recording, None)
    }

    fn serve(
        listener: TcpListener,
        script: Script,
        recording: Recording,
        identity: Option<Arc<Identity>>,
    ) -> Self {
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::new(script, recording));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared), identity.clone()));
        Self { address, shared, accepting: Mutex::new(Some(accepting)), identity }
    }

    /// Where to send to.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.identity.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/hooks", self.address)
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate to trust, when it speaks TLS.
    #[must_use]
    pub fn ca_file(&self) -> Option<&Path> {
        self.identity.as_deref().map(|identity| identity.ca_file.as_path())
    }

    /// The certificate that a client has to show, when it wants one.
    #[must_use]
    pub fn client_files(&self) -> Option<&ClientFiles> {
        self.identity.as_deref().and_then(|identity| identity.client.as_ref())
    }

    /// Answers by `script` from the next request on.
    pub fn set_script(&self, script: Script) {
        *self.shared.script.lock().unwrap_or_else(PoisonError::into_inner) = script;
    }

    /// Lets requests that met [`Answer::Held`], and those that will, be answered.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Stops listening and drops every connection: further attempts to connect are refused.
    pub async fn go_away(&self) {
        if let Some(accepting) = self.take_accepting() {
            accepting.abort();
            // The port is free once the task has really ended.
            let _ = accepting.await;
        }
    }

    /// Listens again on the same port after [`Self::go_away`].
    pub async fn come_back(&self) {
        let listener = TcpListener::bind(self.address).await.expect("the port is still free");
        let accepting = tokio::spawn(accept(listener, Arc::clone(&self.shared), self.identity.clone()));
        *self.accepting.lock().unwrap_or_else(PoisonError::into_inner) = Some(accepting);
    }

    fn take_accepting(&self) -> Option<JoinHandle<()>> {
        self.accepting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What was recorded in memory, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }

    /// The same as the lines of a ledger, in the order of what happened.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner).entries.clone()
    }

    /// Requests read so far.
    #[must_use]
    pub fn count(&self) -> usize {
        *self.shared.arrived.borrow()
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Waits until `count` requests were read.
    pub async fn wait_for(&self, count: usize) {
        let mut arrived = self.shared.arrived.subscribe();
        arrived.wait_for(|&arrived| arrived >= count).await.expect("the receiver is alive");
    }

    /// Waits until `count` connections have been closed, by either side.
    pub async fn wait_for_closed(&self, count: usize) {
        let mut closed = self.shared.closed.subscribe();
        closed.wait_for(|&closed| closed >= count).await.expect("the receiver is alive");
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(accepting) = self.take_accepting() {
            accepting.abort();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, identity: Option<Arc<Identity>>) {
    // Aborted together with this task.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let number = shared.connections.fetch_add(1, Ordering::Relaxed);
        let (shared, identity) = (Arc::clone(&shared), identity.clone());
        connections.spawn(async move {
            if let Some(wire) = open(stream, identity).await {
                connection::serve(wire, number, Arc::clone(&shared)).await;
            }
            shared.closed.send_modify(|closed| *closed += 1);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn open(stream: TcpStream, identity: Option<Arc<Identity>>) -> Option<Wire> {
    match identity {
        None => Some(Wire::Plain(stream)),
        Some(identity) => Some(Wire::Tls(Box::new(identity.acceptor.accept(stream).await.ok()?))),
    }
}

/// What is remembered with [`Recording::Memory`].
#[derive(Debug, Default)]
struct Memory {
    requests: Vec<Received>,
    entries: Vec<Entry>,
}

/// What all connections of a receiver share.
#[derive(Debug)]
pub(super) struct Shared {
    script: Mutex<Script>,
    recording: Recording,
    always_ok: bool,
    memory: Mutex<Memory>,
    arrived: watch::Sender<usize>,
    released: watch::Sender<bool>,
    connections: AtomicUsize,
    closed: watch::Sender<usize>,
}

impl Shared {
    fn new(script: Script, recording: Recording) -> Self {
        Self {
            always_ok: script.is_always_ok(),
            script: Mutex::new(script),
            recording,
            memory: Mutex::default(),
            arrived: watch::Sender::new(0),
            released: watch::Sender::new(false),
            connections: AtomicUsize::new(0),
            closed: watch::Sender::new(0),
        }
    }

    /// Whether requests need only be counted: for benchmarks, in which the receiver shall cost next to nothing.
    pub(super) fn takes_everything_unseen(&self) -> bool {
        self.always_ok && matches!(self.recording, Recording::Count)
    }

    pub(super) fn count_unseen(&self) {
        self.arrived.send_modify(|arrived| *arrived += 1);
    }

    /// Records a request and decides its answer.
    pub(super) fn receive(&self, connection: usize, head: &[u8], body: &[u8]) -> (Received, Answer) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let arrival = *self.arrived.borrow();
        let mut received = Received::parse(arrival, connection, head, body);
        let answer = self.script.lock().unwrap_or_else(PoisonError::into_inner).decide(&received);
        let moment = if answer.is_immediate() {
            received.status = answer.status();
            Moment::Whole
        } else {
            Moment::Arrival
        };
        self.write(&mut memory, received.entry(moment));
        if matches!(self.recording, Recording::Memory) {
            memory.requests.push(received.clone());
        }
        // Told while the record is locked, so that whoever waits finds the request in it.
        self.arrived.send_modify(|arrived| *arrived += 1);
        (received, answer)
    }

    /// Records that a request is now being given its answer.
    pub(super) fn answered(&self, mut received: Received, answer: &Answer) {
        if answer.is_immediate() {
            return;
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        received.status = answer.status();
        self.write(&mut memory, received.entry(Moment::Answer));
        if let Some(remembered) = memory.requests.get_mut(received.arrival) {
            remembered.status = received.status;
        }
    }

    fn write(&self, memory: &mut Memory, entry: Option<Entry>) {
        match (&self.recording, entry) {
            (Recording::Memory, Some(entry)) => memory.entries.push(entry),
            (Recording::File(file), Some(entry)) => file.write(&entry),
            _ => {}
        }
    }

    pub(super) async fn wait_for_release(&self) {
        let mut released = self.released.subscribe();
        released.wait_for(|&released| released).await.expect("the receiver is alive");
    }
}
