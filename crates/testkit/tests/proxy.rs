//! The proxy does what it is told, and nothing else.
#![expect(clippy::unwrap_used, reason = "a panic is the failing assertion, in what the tests share as well")]

use std::time::{Duration, Instant};

use postbox_testkit::proxy::{Direction, Proxy, Weather};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longest wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy with one connection through it: the client's end and the server's.
async fn connected() -> (Proxy, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).await;
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (proxy, client, server)
}

async fn read(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut buffer = vec![0; 100];
    let length = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.expect("nothing came")?;
    buffer.truncate(length);
    Ok(buffer)
}

#[tokio::test]
async fn in_clear_weather_bytes_and_ends_pass_both_ways() {
    let (_proxy, mut client, mut server) = connected().await;
    client.write_all(b"ask").await.unwrap();
    assert_eq!(read(&mut server).await.unwrap(), b"ask");
    server.write_all(b"answer").await.unwrap();
    assert_eq!(read(&mut client).await.unwrap(), b"answer");
    client.shutdown().await.unwrap();
    assert_eq!(read(&mut server).await.unwrap(), b"");
    server.write_all(b"more").await.unwrap();
    assert_eq!(read(&mut client).await.unwrap(), b"more");
}

#[tokio::test]
async fn slow_weather_delays_and_still_weather_holds_back() {
    const DELAY: Duration = Duration::from_millis(50);
    let (proxy, mut client, mut server) = connected().await;
    proxy.set_weather(Weather::Slow(DELAY));
    let began = Instant::now();
    client.write_all(b"late").await.unwrap();
    assert_eq!(read(&mut server).await.unwrap(), b"late");
    assert!(began.elapsed() >= DELAY);

    proxy.set_weather(Weather::Still);
    client.write_all(b"held").await.unwrap();
    let mut buffer = [0; 10];
    assert!(tokio::time::timeout(DELAY, server.read(&mut buffer)).await.is_err(), "it passed");
    proxy.set_weather(Weather::Clear);
    assert_eq!(read(&mut server).await.unwrap(), b"held");
}

#[tokio::test]
async fn mute_weather_holds_back_what_goes_to_the_server_only() {
    let (proxy, mut client, mut server) = connected().await;
    proxy.set_weather(Weather::Mute);
    client.write_all(b"held").await.unwrap();
    server.write_all(b"passes").await.unwrap();
    assert_eq!(read(&mut client).await.unwrap(), b"passes");
    let mut buffer = [0; 10];
    let waited = tokio::time::timeout(Duration::from_millis(50), server.read(&mut buffer)).await;
    assert!(waited.is_err(), "it passed");
    proxy.set_weather(Weather::Clear);
    assert_eq!(read(&mut server).await.unwrap(), b"held");
}

#[tokio::test]
async fn a_cut_resets_both_ends_and_spares_later_connections() {
    let (proxy, mut client, mut server) = connected().await;
    proxy.cut();
    assert!(read(&mut client).await.is_err());
    assert!(read(&mut server).await.is_err());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).await;
    proxy.cut();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    client.write_all(b"on").await.unwrap();
    assert_eq!(read(&mut server).await.unwrap(), b"on");
}

#[tokio::test]
async fn a_half_close_ends_one_direction_only() {
    let (proxy, mut client, mut server) = connected().await;
    proxy.half_close(Direction::ToServer);
    assert_eq!(read(&mut server).await.unwrap(), b"", "the server reads an end");
    server.write_all(b"answer").await.unwrap();
    assert_eq!(read(&mut client).await.unwrap(), b"answer");
}

#[tokio::test]
async fn refusing_weather_closes_new_connections_and_spares_existing_ones() {
    let (proxy, mut client, mut server) = connected().await;
    proxy.set_weather(Weather::Refusing);
    let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(read(&mut refused).await.is_ok_and(|bytes| bytes.is_empty()));
    client.write_all(b"on").await.unwrap();
    assert_eq!(read(&mut server).await.unwrap(), b"on");
    assert_eq!(proxy.connections(), 1);
}
