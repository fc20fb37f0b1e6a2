//! A load generator: what the receiver can take when nothing else stands in the way.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::receiver::ANSWER;

/// Requests per second that the receiver answered over `connections` keep-alive connections, one request at a time on
/// each, over about `length`.
pub(crate) fn requests_per_second(to: SocketAddr, connections: u32, length: Duration) -> Outcome<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for stream in streams {
            tasks.spawn(repeat(stream, began + length));
        }
        let mut requests = 0;
        while let Some(done) = tasks.join_next().await {
            requests += done??;
        }
        Ok(requests as f64 / began.elapsed().as_secs_f64())
    })
}

async fn repeat(mut stream: TcpStream, until: Instant) -> std::io::Result<u64> {
    let request = request();
    let mut answer = [0; ANSWER.len()];
    let mut requests = 0;
    while Instant::now() < until {
        stream.write_all(&request).await?;
        stream.read_exact(&mut answer).await?;
        requests += 1;
    }
    Ok(requests)
}

/// About as long as what a webhook destination sends for a payload of 250 bytes.
fn request() -> Vec<u8> {
    let body = "x".repeat(450);
    format!(
        "POST /hook HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nuser-agent: postbox-bench\r\n\
         x-idempotency-key: 0190f2a4-6c3e-7b1a-8c2d-000000000001\r\nx-event-sequence: 1\r\npostbox-attempt: 1\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
