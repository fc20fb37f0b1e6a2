//! As much of HTTP/1.1 as both sides need here.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Largest head that is read, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Largest body that is read, in bytes.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A request or an answer, whole.
pub(crate) struct Request {
    /// The first word of the first line: a method, or a version.
    pub(crate) method: String,
    /// The second word: a target, or a status.
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The value of the first header called `name`, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Reads one message; what is left of the bytes stays in `buffer`. `None` at the end of the connection.
pub(crate) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    let head_end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if buffer.len() > MAX_HEAD_BYTES {
            return Err(wrong("the head does not end"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().splitn(3, ' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(Ok(0), |(_, value)| value.parse());
    let length: usize = length.map_err(|_| wrong("the content-length is no number"))?;
    if length > MAX_BODY_BYTES {
        return Err(wrong("the body is too large"));
    }
    let body_start = head_end + 4;
    while buffer.len() < body_start + length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = buffer[body_start..body_start + length].to_vec();
    let request = Request { method: method.to_owned(), target: target.to_owned(), headers, body };
    buffer.drain(..body_start + length);
    Ok(Some(request))
}

/// An answer with a JSON body.
pub(crate) fn answer(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Fake\r\ncontent-type: application/json; charset=UTF-8\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn wrong(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}
