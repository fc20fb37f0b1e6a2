//! Blanks out what an error must not show when it quotes a line of the file.
//!
//! Masking replaces bytes one for one, so that positions in the masked text are those of the file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Words in a key whose value, written out in the file, is taken for a secret.
const SECRET_KEYS: [&str; 6] =
    ["secret", "password", "token", "authorization", "request_headers", "credentials"];

/// `text` with the passwords of its URLs and the values of secret keys blanked out.
pub(crate) fn masked(text: &str, document: &DeTable<'_>) -> String {
    let mut spans = Vec::new();
    passwords(text, &mut spans);
    secret_lines(text, &mut spans);
    secret_values(document, false, &mut spans);
    let mut bytes = text.as_bytes().to_vec();
    for span in spans {
        for byte in &mut bytes[span] {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b'*';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// The password in every `scheme://user:password@host`.
fn passwords(text: &str, spans: &mut Vec<Range<usize>>) {
    for (found, _) in text.match_indices("://") {
        let start = found + 3;
        let rest = &text[start..];
        let authority = &rest[..rest.find(['"', '\'', '\n', ' ']).unwrap_or(rest.len())];
        // The last @ ends the user part, since a password may hold one that was not escaped.
        if let Some(at) = authority.rfind('@')
            && let Some(colon) = authority[..at].find(':')
        {
            spans.push(start + colon + 1..start + at);
        }
        for (query, _) in authority.match_indices("password=") {
            let value = query + "password=".len();
            let end = authority[value..].find('&').map_or(authority.len(), |n| value + n);
            spans.push(start + value..start + end);
        }
    }
}

/// Everything quoted after `key =` when the key's name is a secret one and no reference follows; covers files that
/// are no valid TOML.
fn secret_lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some((key, value)) = line.split_once('=')
            && is_secret_key(key)
            && !value.contains("env")
            && !value.contains("file")
        {
            spans.push(start + key.len() + 1..start + line.len());
        }
        start += line.len();
    }
}

/// Text values under a secret key, except the names that a reference gives.
fn secret_values(table: &DeTable<'_>, inside: bool, spans: &mut Vec<Range<usize>>) {
    for (key, value) in table {
        let name = key.get_ref();
        let reference = inside && matches!(&**name, "env" | "file" | "until");
        secret_value(value, (inside || is_secret_key(name)) && !reference, spans);
    }
}

fn secret_value(value: &Spanned<DeValue<'_>>, inside: bool, spans: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => secret_values(table, inside, spans),
        DeValue::Array(items) => items.iter().for_each(|item| secret_value(item, inside, spans)),
        DeValue::String(_) if inside => spans.push(value.span()),
        _ => {}
    }
}

fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_KEYS.iter().any(|secret| key.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str) -> String {
        let shown = masked(text, DeTable::parse_recoverable(text).0.get_ref());
        assert_eq!(shown.len(), text.len());
        shown
    }

    #[test]
    fn no_secret_of_the_file_is_left() {
        for text in [
            "url = \"postgres://app:hunter2@db/shop\"",
            "url = \"postgres://app:hun@hunter2@db/shop\"",
            "url = \"postgres://db/shop?user=a&password=hunter2&x=1\"",
            "secret = \"hunter2\"",
            "secret = [{ env = \"A\" }, \"hunter2\"]",
            "secrets = [\n  \"hunter2\",\n]",
            "request_headers = { Authorization = \"Bearer hunter2\" }",
            "[x.request_headers]\nAuthorisation = \"hunter2\"",
            "secret = \"hunter2",
            "proxy_credentials = \"me:hunter2\"",
            "proxy = \"http://me:hunter2@proxy:3128\"",
        ] {
            let shown = mask(text);
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn everything_else_stays_readable() {
        for text in [
            "secret = { env = \"BILLING\" }",
            "secret = { env = \"BILLING\", until = \"tomorrow\" }",
            "url = \"https://billing.example/hooks\"",
            "events = [\"a.*\"]",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
