//! Phone numbers in what Meta says about a message.

/// Digits from which a run of them may be somebody's number; Meta's error codes and subcodes are shorter.
const LONG: usize = 8;

/// The same for a run with a `+` in front: the shortest numbers that there are.
const LONG_WITH_PLUS: usize = 7;

/// `text` with everything that may be a phone number cut down to its last two digits: `…67`.
///
/// Error details may repeat the recipient, and reasons and answers are stored and shown to operators.
#[must_use]
pub fn shorten_numbers(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (run, digits) = run_of_digits(&rest[start..]);
        let number = &rest[start..start + run];
        let long = if rest[..start].ends_with('+') { LONG_WITH_PLUS } else { LONG };
        if digits >= long {
            shown.push_str(rest[..start].trim_end_matches('+'));
            shown.push('…');
            shown.push_str(&number[number.len() - 2..]);
        } else {
            shown.push_str(&rest[..start + run]);
        }
        rest = &rest[start + run..];
    }
    shown.push_str(rest);
    shown
}

/// The length in bytes of the run that `text` begins with, up to its last two digits' end, and its number of digits.
fn run_of_digits(text: &str) -> (usize, usize) {
    let (mut end, mut digits, mut between) = (0, 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => (end, digits, between) = (at + 1, digits + 1, 0),
            b' ' | b'-' | b'(' | b')' | b'.' if between < 2 => between += 1,
            _ => break,
        }
    }
    (end, digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_cut_and_codes_are_not() {
        for (text, shown) in [
            ("no number", "no number"),
            ("(#131026) subcode 2494055", "(#131026) subcode 2494055"),
            ("to +491701234567.", "to …67."),
            ("to 49 (170) 123-45 67, code 131026", "to …67, code 131026"),
            ("+49170123456789", "…89"),
            ("+683 4001 or 683 4001", "…01 or 683 4001"),
            ("ü12345678ü", "ü…78ü"),
            ("1234 5678", "…78"),
            ("1234, 5678", "1234, 5678"),
        ] {
            assert_eq!(shorten_numbers(text), shown);
        }
    }

    proptest! {
        #[test]
        fn no_number_survives(before in "[a-z:{\" ]{0,10}", number in "[1-9][0-9]{7,14}", after in "[a-z,}\"]{0,10}") {
            let shown = shorten_numbers(&format!("{before}+{number}{after}"));
            prop_assert!(!shown.contains(&number[..3]) || number[..3].contains(&number[number.len() - 2..]), "{}", shown);
            prop_assert!(!shown.contains(&number));
        }

        #[test]
        fn any_text_is_taken_and_none_becomes_longer(text in "\\PC{0,200}") {
            prop_assert!(shorten_numbers(&text).len() <= text.len());
        }
    }
}
