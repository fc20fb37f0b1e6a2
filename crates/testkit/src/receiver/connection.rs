//! One connection: requests in, answers out, until either side has enough.

use std::io;
use std::sync::Arc;

use super::answer::Answer;
use super::record::Received;
use super::request;
use super::server::Shared;
use super::wire::Wire;

const PLAIN_OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What comes after an answer.
enum Next {
    Request,
    Close,
    Reset,
}

/// Serves `wire` to its end. Errors of the connection are the peer's business.
pub(super) async fn serve(mut wire: Wire, number: usize, shared: Arc<Shared>) {
    let mut buffer = Vec::with_capacity(8 * 1024);
    loop {
        let extent = loop {
            match request::find(&buffer) {
                Ok(Some(extent)) => break extent,
                Ok(None) => {}
                Err(_) => return,
            }
            match wire.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        let next = if shared.takes_everything_unseen() {
            shared.count_unseen();
            wire.write(PLAIN_OK).await.map(|()| Next::Request)
        } else {
            let (received, answer) =
                shared.receive(number, &buffer[extent.head.clone()], &buffer[extent.body.clone()]);
            give(&mut wire, &shared, received, &answer).await
        };
        buffer.drain(..extent.body.end);
        match next {
            Ok(Next::Request) => {}
            Ok(Next::Close) | Err(_) => return,
            Ok(Next::Reset) => return wire.reset(),
        }
    }
}

/// Gives `answer`. It is recorded as answered before its last byte leaves, so that a record never lags behind what the
/// sender can know.
async fn give(wire: &mut Wire, shared: &Shared, received: Received, answer: &Answer) -> io::Result<Next> {
    let scripted = answer;
    let mut answer = answer;
    while let Answer::After(delay, then) = answer {
        tokio::time::sleep(*delay).await;
        answer = then;
    }
    if *answer == Answer::Held {
        shared.wait_for_release().await;
    }
    shared.answered(received, scripted);
    match answer {
        Answer::Ok | Answer::Held | Answer::After(..) => {
            wire.write(PLAIN_OK).await?;
            Ok(Next::Request)
        }
        Answer::Status(status) => {
            wire.write(&response(*status, &[], b"")).await?;
            Ok(Next::Request)
        }
        Answer::With { status, headers, body } => {
            wire.write(&response(*status, headers, body)).await?;
            Ok(Next::Request)
        }
        Answer::Lost => Ok(Next::Close),
        Answer::Reset => Ok(Next::Reset),
        Answer::Silence => {
            wire.wait_for_the_peer().await;
            Ok(Next::Close)
        }
        Answer::Garbage => {
            wire.write(b"\x16\x03\x01 this is no HTTP \xff\xfe\r\n\r\n").await?;
            Ok(Next::Close)
        }
        Answer::EndlessBody(status) => {
            let head = format!("HTTP/1.1 {status} Endless\r\ntransfer-encoding: chunked\r\n\r\n");
            let chunk = [b"400\r\n".as_slice(), &[b'x'; 0x400], b"\r\n"].concat();
            endless(wire, head.as_bytes(), &chunk).await
        }
        Answer::EndlessAfter(status, beginning) => {
            let head = format!("HTTP/1.1 {status} Endless\r\ntransfer-encoding: chunked\r\n\r\n");
            let size = format!("{:x}\r\n", beginning.len());
            let first = [head.as_bytes(), size.as_bytes(), beginning, b"\r\n"].concat();
            let chunk = [b"400\r\n".as_slice(), &[b'x'; 0x400], b"\r\n"].concat();
            endless(wire, &first, &chunk).await
        }
        Answer::EndlessHead => endless(wire, b"HTTP/1.1 200 OK\r\n", b"x-padding: x\r\n").await,
        Answer::EndlessInterim => endless(wire, b"", b"HTTP/1.1 102 Processing\r\n\r\n").await,
        Answer::SlowBody(status, pause) => {
            let head = format!("HTTP/1.1 {status} Slow\r\ncontent-length: 1000000\r\n\r\n");
            wire.write(head.as_bytes()).await?;
            wire.drip(&[b'x'; 1_000_000], *pause).await?;
            Ok(Next::Close)
        }
        Answer::HugeHead(bytes) => {
            wire.write(b"HTTP/1.1 200 OK\r\nx-padding: ").await?;
            wire.write(&vec![b'x'; *bytes]).await?;
            wire.write(b"\r\ncontent-length: 0\r\n\r\n").await?;
            Ok(Next::Request)
        }
        Answer::HalfBody(status) => {
            let head = format!("HTTP/1.1 {status} Half\r\ncontent-length: 100\r\n\r\n");
            wire.write(head.as_bytes()).await?;
            wire.write(&[b'x'; 50]).await?;
            Ok(Next::Close)
        }
        Answer::Drip(pause) => {
            wire.drip(&response(200, &[], b"slowly"), *pause).await?;
            Ok(Next::Request)
        }
        Answer::DripBody(pause, body) => {
            let head = format!("HTTP/1.1 200 Scripted\r\ncontent-length: {}\r\n\r\n", body.len());
            wire.write(head.as_bytes()).await?;
            wire.drip(body, *pause).await?;
            Ok(Next::Request)
        }
        Answer::OkAndClose => {
            let headers = [("connection".to_owned(), "close".to_owned())];
            wire.write(&response(200, &headers, b"")).await?;
            Ok(Next::Close)
        }
        Answer::OkThenClosed => {
            wire.write(PLAIN_OK).await?;
            Ok(Next::Close)
        }
    }
}

/// Writes `beginning`, then `again` until the peer has closed, which ends it with an error.
async fn endless(wire: &mut Wire, beginning: &[u8], again: &[u8]) -> io::Result<Next> {
    wire.write(beginning).await?;
    loop {
        wire.write(again).await?;
    }
}

fn response(status: u16, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status} Scripted\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    bytes
}
