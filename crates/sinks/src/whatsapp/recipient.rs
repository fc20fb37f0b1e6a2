//! Phone numbers.

/// Digits of a number with its country code: ITU-T E.164 has at most 15, and no numbering plan gives numbers below 7.
const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// What people put between digits; the Cloud API takes these as well (Meta: Messages, WhatsApp user phone number
/// formats).
const SEPARATORS: [char; 6] = [' ', '-', '(', ')', '.', '/'];

/// The number as the Cloud API is sure to understand it: `+`, country code, digits.
///
/// # Errors
/// What is wrong, without the number.
pub(super) fn check_phone(text: &str) -> Result<String, &'static str> {
    let number = text.strip_prefix('+').unwrap_or(text);
    if !number.chars().all(|c| c.is_ascii_digit() || SEPARATORS.contains(&c)) {
        return Err("is no phone number: digits with their country code, + in front, spaces or - between");
    }
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    if !DIGITS.contains(&digits.len()) {
        return Err("is no phone number: those have 7 to 15 digits with their country code");
    }
    if digits.starts_with('0') {
        return Err("begins with 0: write the number with its country code, as from abroad");
    }
    Ok(format!("+{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_as_people_write_them() {
        for text in ["+49 170 1234567", "491701234567", "+49 (170) 123-45.67", "+49170/1234567"] {
            assert_eq!(check_phone(text).as_deref(), Ok("+491701234567"), "{text}");
        }
        assert_eq!(check_phone("+683 4001").as_deref(), Ok("+6834001"));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "+",
            "++491701234567",
            "49+1701234567",
            "0170 1234567",
            "abc",
            "٤٩١٧٠١٢٣٤٥٦٧",
            "49170123456789012",
        ] {
            assert!(check_phone(text).is_err(), "{text}");
        }
    }
}
