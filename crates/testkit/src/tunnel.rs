//! A forward proxy that opens tunnels (HTTP CONNECT), and remembers which.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Largest head that is waited for.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// What a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Host and port, as it wrote them.
    pub target: String,
    /// Its `proxy-authorization`.
    pub authorization: Option<String>,
}

/// A proxy on a free port of 127.0.0.1; dropping it closes its port.
#[derive(Debug)]
pub struct TunnelProxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    accepting: JoinHandle<()>,
}

impl TunnelProxy {
    /// A proxy that opens every tunnel it is asked for.
    pub async fn start() -> Self {
        Self::answering("200 Connection established").await
    }

    /// A proxy that answers `status`, and opens the tunnel only if that is a 200.
    pub async fn answering(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of 127.0.0.1 can be bound");
        let address = listener.local_addr().expect("a bound socket has an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        let accepting = tokio::spawn(async move {
            let mut tunnels = tokio::task::JoinSet::new();
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                tunnels.spawn(serve(client, status, Arc::clone(&record)));
            }
        });
        Self { address, asked, accepting }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything it was asked for, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for TunnelProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut client: TcpStream, status: &str, record: Arc<Mutex<Vec<Asked>>>) {
    let Some(asked) = read_head(&mut client).await else { return };
    record.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    let head = format!("HTTP/1.1 {status}\r\n\r\n");
    if !status.starts_with("200") {
        let _ = client.write_all(head.as_bytes()).await;
        return;
    }
    let Ok(mut server) = TcpStream::connect(&asked.target).await else { return };
    if client.write_all(head.as_bytes()).await.is_ok() {
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

/// The request, if it is one for a tunnel.
async fn read_head(client: &mut TcpStream) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte, so that nothing of what follows is taken.
        head.push(client.read_u8().await.ok()?);
        if head.len() > MAX_HEAD_BYTES {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    let authorization = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("proxy-authorization").then(|| value.trim().to_owned())
    });
    Some(Asked { target, authorization })
}
