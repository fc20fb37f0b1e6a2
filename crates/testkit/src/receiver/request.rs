//! Finding requests in what a connection brings.

use std::ops::Range;

/// Largest head that is waited for.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Where one request lies in the bytes read so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extent {
    /// Request line and headers.
    pub(super) head: Range<usize>,
    /// The body.
    pub(super) body: Range<usize>,
}

/// The first request in `bytes`: `Ok(None)` when it is not there whole, an error when it never will be.
pub(super) fn find(bytes: &[u8]) -> Result<Option<Extent>, &'static str> {
    let Some(head_end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if bytes.len() > MAX_HEAD_BYTES { Err("the request's head does not end") } else { Ok(None) };
    };
    let body_start = head_end + 4;
    let length = match header(&bytes[..head_end], "content-length") {
        None => 0,
        Some(value) => std::str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse::<usize>().ok())
            .ok_or("the request's content-length is no number")?,
    };
    let end = body_start + length;
    Ok((bytes.len() >= end).then_some(Extent { head: 0..head_end, body: body_start..end }))
}

/// Value of the first header `name` (lower case) in `head`.
pub(super) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    lines(head).skip(1).find_map(|line| {
        let (found, value) = split(line)?;
        found.eq_ignore_ascii_case(name.as_bytes()).then_some(value)
    })
}

/// All headers, names in lower case.
pub(super) fn headers(head: &[u8]) -> Vec<(String, String)> {
    lines(head)
        .skip(1)
        .filter_map(|line| {
            let (name, value) = split(line)?;
            Some((
                String::from_utf8_lossy(name).to_ascii_lowercase(),
                String::from_utf8_lossy(value).into_owned(),
            ))
        })
        .collect()
}

/// Method and target of the request line.
pub(super) fn request_line(head: &[u8]) -> (String, String) {
    let line = lines(head).next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    (word(), word())
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"POST /hooks HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET";

    #[test]
    fn a_request_is_found_once_it_is_there_whole() {
        let whole = REQUEST.len() - 3;
        for length in 0..whole {
            assert_eq!(find(&REQUEST[..length]), Ok(None), "{length}");
        }
        let extent = find(REQUEST).unwrap().unwrap();
        assert_eq!(&REQUEST[extent.body.clone()], b"abc");
        assert_eq!(extent.body.end, whole);
        assert_eq!(request_line(&REQUEST[extent.head.clone()]), ("POST".to_owned(), "/hooks".to_owned()));
        assert_eq!(headers(&REQUEST[extent.head])[0], ("host".to_owned(), "a".to_owned()));
    }

    #[test]
    fn what_never_becomes_a_request_is_an_error() {
        find(&vec![b'x'; MAX_HEAD_BYTES + 1]).unwrap_err();
        find(b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n").unwrap_err();
    }
}
