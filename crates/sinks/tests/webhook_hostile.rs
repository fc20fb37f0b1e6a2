//! Receivers that try to cost the relay more than one attempt's time and a few kilobytes.

use std::time::Duration;

use postbox_core::outcome::FailureClass::{self, Transient, Unknown};
use postbox_core::outcome::{Failure, Outcome};
use postbox_core::sink::{Attempt, Sink};
use postbox_sinks::webhook::{WebhookConfig, WebhookSink};
use postbox_testkit::receiver::{Answer, Receiver, Script};
use postbox_testkit::sink_conformance::{attempt, event};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Short, so that waiting for it costs the test little; how long it takes is asserted nowhere.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Sends to `url`, trusting a certificate so that https is spoken where the system has none.
async fn deliver(url: String, payload: &str, timeout: Duration) -> Outcome {
    let ca = Receiver::start_tls(Script::always(Answer::Ok)).await;
    let ca_file = ca.ca_file().map(std::path::Path::to_path_buf);
    let sink =
        WebhookSink::new(WebhookConfig { ca_file, ..WebhookConfig::new(url) }).expect("the URL is one");
    sink.deliver(&Attempt { timeout, ..attempt(event("1", 1, payload)) }).await
}

#[track_caller]
fn failure(outcome: Outcome, class: FailureClass, hint: &str) -> Failure {
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?} is no failure") };
    assert_eq!(failure.class, class, "{failure:?}");
    assert!(failure.reason.contains(hint), "{failure:?}");
    failure
}

/// A server that does `serve` with every connection and keeps what it returns open.
async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = Option<TcpStream>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of 127.0.0.1 can be bound");
    let address = listener.local_addr().expect("a bound socket has an address");
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(serve(stream).await);
        }
    });
    address.to_string()
}

#[tokio::test]
async fn headers_without_end_are_given_up_at_their_bound() {
    let receiver = Receiver::start(Script::always(Answer::EndlessHead)).await;
    let outcome = deliver(receiver.url(), "{}", Duration::from_secs(60)).await;
    failure(outcome, Unknown, "head is larger than 64 KiB or has more than 100 headers");
    receiver.wait_for_closed(1).await;
}

#[tokio::test]
async fn interim_answers_without_end_cost_the_attempt_its_time() {
    let receiver = Receiver::start(Script::always(Answer::EndlessInterim)).await;
    failure(deliver(receiver.url(), "{}", TIMEOUT).await, Unknown, "no answer within 0.5 s");
    receiver.wait_for_closed(1).await;
}

#[tokio::test]
async fn a_body_that_drips_is_left_and_the_head_counts() {
    let slow = async |status| {
        let answer = Answer::SlowBody(status, Duration::from_millis(50));
        let receiver = Receiver::start(Script::always(answer)).await;
        let outcome = deliver(receiver.url(), "{}", Duration::from_secs(60)).await;
        receiver.wait_for_closed(1).await;
        outcome
    };
    let (fine, failed) = tokio::join!(slow(200), slow(500));
    assert!(matches!(fine, Outcome::Delivered(_)), "{fine:?}");
    failure(failed, Transient, "answered 500");
}

#[tokio::test]
async fn a_compressed_answer_is_never_unpacked_nor_shown() {
    let bomb = Answer::With {
        status: 500,
        headers: vec![("content-encoding".to_owned(), "gzip".to_owned())],
        body: gzip_of_zeros(100_000_000),
    };
    let receiver = Receiver::start(Script::always(bomb)).await;
    let failure =
        failure(deliver(receiver.url(), "{}", Duration::from_secs(60)).await, Transient, "answered 500");
    assert_eq!(failure.answer, None);
}

/// About `count` zeros, packed a thousandfold by RFC 1951: one literal, then copies of 258 from one byte back.
fn gzip_of_zeros(count: usize) -> Vec<u8> {
    let mut bits = Vec::new();
    // Bits in the order in which they are sent: a last block with fixed codes, the literal 0.
    bits.extend([1, 1, 0]);
    bits.extend([0, 0, 1, 1, 0, 0, 0, 0]);
    for _ in 0..count / 258 {
        // Code 285 (length 258), distance code 0.
        bits.extend([1, 1, 0, 0, 0, 1, 0, 1]);
        bits.extend([0, 0, 0, 0, 0]);
    }
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    bytes.extend(bits.chunks(8).map(|byte| byte.iter().rev().fold(0_u8, |sum, bit| (sum << 1) | bit)));
    bytes
}

#[tokio::test]
async fn garbage_instead_of_a_tls_handshake_is_transient() {
    let address = raw(async |mut stream: TcpStream| {
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\x00\xff\xfe").await.ok()?;
        Some(stream)
    })
    .await;
    let outcome = deliver(format!("https://{address}/"), "{}", Duration::from_secs(60)).await;
    failure(outcome, Transient, "TLS handshake with 127.0.0.1");
}

#[tokio::test]
async fn a_reset_in_the_tls_handshake_is_transient() {
    let address = raw(async |mut stream: TcpStream| {
        stream.read_u8().await.ok()?;
        stream.set_zero_linger().ok()?;
        None
    })
    .await;
    let outcome = deliver(format!("https://{address}/"), "{}", Duration::from_secs(60)).await;
    failure(outcome, Transient, "TLS handshake with 127.0.0.1");
}

#[tokio::test]
async fn a_reset_in_the_middle_of_the_request_is_unknown() {
    let address = raw(async |mut stream: TcpStream| {
        stream.read_u8().await.ok()?;
        stream.set_zero_linger().ok()?;
        None
    })
    .await;
    let payload = format!("\"{}\"", "x".repeat(20_000_000));
    let outcome = deliver(format!("http://{address}/"), &payload, Duration::from_secs(60)).await;
    failure(outcome, Unknown, "connection");
}

#[tokio::test]
async fn a_receiver_that_takes_nothing_in_costs_the_attempt_its_time() {
    let address = raw(async |stream: TcpStream| Some(stream)).await;
    let payload = format!("\"{}\"", "x".repeat(20_000_000));
    let outcome = deliver(format!("http://{address}/"), &payload, TIMEOUT).await;
    failure(outcome, Unknown, "no answer within 0.5 s");
}
