//! A TCP proxy that misbehaves on request: it drops, delays, stalls and half-closes what passes through it.
//!
//! It passes bytes on as they come and understands none of them, so that it fits between a relay and its database as
//! well as between a relay and a receiver.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Bytes taken in at once, and so the most that is ever on its way in one direction of a connection.
const BUFFER_BYTES: usize = 16 * 1024;

/// What the proxy does with everything that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Passes everything on at once.
    Clear,
    /// Passes everything on, each piece this much later.
    Slow(Duration),
    /// Passes nothing on and closes nothing; what was sent arrives when the weather clears.
    Still,
    /// Passes nothing on to the server; what comes from it passes.
    Mute,
    /// Refuses new connections by closing them at once; existing ones go on.
    Refusing,
}

/// Which direction of a connection is ended by [`Proxy::half_close`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The server reads an end; what it answers still arrives.
    ToServer,
    /// The client reads an end; what it sends still arrives.
    ToClient,
}

/// What all connections are told; a number that changes is an order to those that exist now.
#[derive(Debug, Clone, Copy)]
struct Orders {
    weather: Weather,
    cuts: usize,
    half_closes: usize,
    direction: Direction,
}

/// A proxy on a free port of 127.0.0.1; dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    orders: watch::Sender<Orders>,
    open: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy in front of `server`, in clear weather.
    ///
    /// # Panics
    /// When no port of 127.0.0.1 can be bound.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of 127.0.0.1 can be bound");
        let address = listener.local_addr().expect("a bound socket has an address");
        let calm =
            Orders { weather: Weather::Clear, cuts: 0, half_closes: 0, direction: Direction::ToServer };
        let orders = watch::Sender::new(calm);
        let open = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn(accept(listener, server, orders.clone(), Arc::clone(&open)));
        Self { address, orders, open, accepting }
    }

    /// Where to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Changes what happens to everything that passes from now on.
    pub fn set_weather(&self, weather: Weather) {
        self.orders.send_modify(|orders| orders.weather = weather);
    }

    /// Resets every connection; what was on its way is lost.
    pub fn cut(&self) {
        self.orders.send_modify(|orders| orders.cuts += 1);
    }

    /// Ends one direction of every connection; the other goes on.
    pub fn half_close(&self, direction: Direction) {
        self.orders.send_modify(|orders| {
            orders.half_closes += 1;
            orders.direction = direction;
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    orders: watch::Sender<Orders>,
    open: Arc<AtomicUsize>,
) {
    // Aborted together with this task.
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        while connections.try_join_next().is_some() {}
        let seen = orders.subscribe();
        // Taken before the server can know of the connection: whoever has seen it may give it orders.
        let begun = *seen.borrow();
        if begun.weather == Weather::Refusing {
            continue;
        }
        let guard = Open::new(&open);
        connections.spawn(async move {
            let _guard = guard;
            // The client sees an end when the server cannot be reached.
            if let Ok(server) = TcpStream::connect(server).await {
                join(client, server, seen, begun).await;
            }
        });
    }
}

/// Counts a connection while it lives.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Carries bytes both ways until both directions have ended, or the connection is cut.
async fn join(client: TcpStream, server: TcpStream, mut orders: watch::Receiver<Orders>, begun: Orders) {
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let half_closes = begun.half_closes;
    let carry = |from, to, direction| Carrier { from, to, orders: orders.clone(), direction, half_closes };
    let mut out = carry(from_client, to_server, Direction::ToServer);
    let mut back = carry(from_server, to_client, Direction::ToClient);
    let was_cut = tokio::select! {
        _ = async { tokio::join!(out.run(), back.run()) } => false,
        _ = orders.wait_for(|orders| orders.cuts != begun.cuts) => true,
    };
    if was_cut {
        for half in [out.to, back.to] {
            // What was on its way is lost, and the peer sees a reset instead of an end.
            let _ = half.as_ref().set_zero_linger();
            half.forget();
        }
    }
}

/// One direction of a connection.
struct Carrier {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    orders: watch::Receiver<Orders>,
    direction: Direction,
    half_closes: usize,
}

impl Carrier {
    async fn run(&mut self) {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let (half_closes, direction) = (self.half_closes, self.direction);
            let ordered =
                move |orders: &Orders| orders.half_closes != half_closes && orders.direction == direction;
            let read = tokio::select! {
                read = self.from.read(&mut buffer) => read,
                _ = self.orders.wait_for(ordered) => break,
            };
            let Ok(length @ 1..) = read else { break };
            self.wait_out_the_weather().await;
            if self.to.write_all(&buffer[..length]).await.is_err() {
                break;
            }
        }
        let _ = self.to.shutdown().await;
    }

    async fn wait_out_the_weather(&mut self) {
        let direction = self.direction;
        let holds_back = |weather| match weather {
            Weather::Still => true,
            Weather::Mute => direction == Direction::ToServer,
            Weather::Clear | Weather::Slow(_) | Weather::Refusing => false,
        };
        let weather = self.orders.borrow().weather;
        if let Weather::Slow(delay) = weather {
            tokio::time::sleep(delay).await;
        } else if holds_back(weather) {
            let _ = self.orders.wait_for(|orders| !holds_back(orders.weather)).await;
        }
    }
}
