//! The local receiver: as cheap as can be while still reading every request, so that it limits nobody before its time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream as BlockingStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Outcome;
use crate::arguments::Receive;

/// What every POST is answered.
pub(crate) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Larger requests are refused by closing the connection.
const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// Serves until standard input ends. The first line written to standard output is the address.
pub(crate) fn serve(options: &Receive) -> Outcome<()> {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let latency = Duration::from_millis(options.latency_ms);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let count = Arc::new(AtomicU64::new(0));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(converse(stream, Arc::clone(&count), latency));
        }
    })
}

/// One connection, until it ends or sends something that is no request.
async fn converse(mut stream: TcpStream, count: Arc<AtomicU64>, latency: Duration) {
    let mut buffer: Vec<u8> = Vec::with_capacity(16 * 1024);
    loop {
        while let Some(length) = request_length(&buffer) {
            if buffer.starts_with(b"GET") {
                let body = count.load(Ordering::Relaxed).to_string();
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
                return;
            }
            if !latency.is_zero() {
                tokio::time::sleep(latency).await;
            }
            count.fetch_add(1, Ordering::Relaxed);
            buffer.drain(..length);
            if stream.write_all(ANSWER).await.is_err() {
                return;
            }
        }
        if buffer.len() > MAX_REQUEST_BYTES || !matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {
            return;
        }
    }
}

/// Bytes of the request at the beginning of `buffer`, if all of it is there.
fn request_length(buffer: &[u8]) -> Option<usize> {
    const LENGTH: &[u8] = b"content-length:";
    let head = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let body = buffer[..head]
        .split(|&byte| byte == b'\n')
        .find(|line| line.len() > LENGTH.len() && line[..LENGTH.len()].eq_ignore_ascii_case(LENGTH))
        .and_then(|line| std::str::from_utf8(&line[LENGTH.len()..]).ok()?.trim().parse::<usize>().ok())
        .unwrap_or(0);
    (buffer.len() >= head + body).then_some(head + body)
}

/// A receiver in a process of its own; ends with this value.
#[derive(Debug)]
pub(crate) struct Receiver {
    process: Child,
    address: SocketAddr,
}

impl Receiver {
    pub(crate) fn start(latency: Duration) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["receive", "--latency-ms", &latency.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("the receiver has no output")?).read_line(&mut line)?;
        Ok(Self { process, address: line.trim().parse()? })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// POST requests answered so far.
    pub(crate) fn count(&self) -> Outcome<u64> {
        let mut stream = BlockingStream::connect(self.address)?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: receiver\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.rsplit("\r\n\r\n").next().unwrap_or_default().parse()?)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
