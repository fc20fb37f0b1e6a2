//! A connection, with or without TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// One accepted connection.
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Wire {
    /// Reads more into `buffer`; 0 is the end.
    pub(super) async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(buffer).await,
            Self::Tls(stream) => stream.read_buf(buffer).await,
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Writes one byte after each `pause`.
    pub(super) async fn drip(&mut self, bytes: &[u8], pause: Duration) -> io::Result<()> {
        for byte in bytes.chunks(1) {
            tokio::time::sleep(pause).await;
            self.write(byte).await?;
        }
        Ok(())
    }

    /// Ends the connection with a reset.
    pub(super) fn reset(self) {
        let tcp = match &self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        };
        tcp.set_zero_linger().expect("a TCP socket can linger");
    }

    /// Keeps the connection open until the peer ends it.
    pub(super) async fn wait_for_the_peer(&mut self) {
        let mut ignored = Vec::new();
        while matches!(self.read(&mut ignored).await, Ok(read) if read > 0) {
            ignored.clear();
        }
    }
}
