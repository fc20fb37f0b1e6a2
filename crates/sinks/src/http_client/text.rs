//! Text from elsewhere, made fit to be kept and shown.

/// Longest reason, in bytes ([`postbox_core::outcome::Failure::reason`]).
pub(crate) const MAX_REASON_BYTES: usize = 500;

/// Bytes of a body that are kept for the operator ([`postbox_core::outcome::Failure::answer`]).
pub(crate) const KEPT_BODY_BYTES: usize = 2 * 1024;

/// Text fit for a reason: one line, bounded, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.truncate(beginning(&line, MAX_REASON_BYTES).len());
    line
}

/// The first `max` bytes of `text`, or a few less where that would cut a character.
pub(crate) fn beginning(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
    &text[..end]
}

/// The beginning of a body as text that every store takes; `None` when nothing is left.
pub(crate) fn kept_text(body: &[u8]) -> Option<String> {
    let mut text = String::from_utf8_lossy(body).replace('\0', "");
    // A replacement character is longer than the byte it stands for.
    text.truncate(beginning(&text, KEPT_BODY_BYTES).len());
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_one_bounded_line() {
        let line = one_line(&format!("a\nb\0{}", "ü".repeat(400)));
        assert!(line.starts_with("a b ü") && line.len() <= MAX_REASON_BYTES);
    }

    #[test]
    fn what_is_kept_of_a_body_is_bounded_and_without_nul() {
        assert_eq!(kept_text(b"a\0b\xff").as_deref(), Some("ab\u{fffd}"));
        assert_eq!(kept_text(b""), None);
        assert!(kept_text(&[0xff; KEPT_BODY_BYTES]).is_some_and(|text| text.len() <= KEPT_BODY_BYTES));
    }
}
