//! The mark that a request carries so that what is said of it later finds its delivery.
//!
//! A destination that cannot recognise a repeated event may still report on each message it took, and give back a text
//! that came with it (WhatsApp: `biz_opaque_callback_data`). That text is `pb1.<event id>.<attempt>`: which event, and
//! which request for it. It holds nothing of a person and nothing secret; whoever can write such reports can also invent
//! it, so a report is believed for its signature and never for its mark.

use std::fmt;

use uuid::Uuid;

/// Which request a message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallbackMark {
    /// The event.
    pub event_id: Uuid,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

impl CallbackMark {
    /// The longest text of one, in bytes: WhatsApp gives back up to 512.
    pub const MAX_BYTES: usize = VERSION.len() + 1 + uuid::fmt::Hyphenated::LENGTH + 1 + "4294967295".len();

    /// The mark that `text` is, if it is one of ours: exactly what [`fmt::Display`] writes, nothing around it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > Self::MAX_BYTES {
            return None;
        }
        let (event_id, attempt) = text.strip_prefix(VERSION)?.strip_prefix('.')?.split_once('.')?;
        let mark = Self { event_id: event_id.parse().ok()?, attempt: attempt.parse().ok()? };
        // One request has one mark: neither another spelling of the id nor `+1` or `01` is it.
        (mark.attempt >= 1 && mark.to_string() == text).then_some(mark)
    }
}

/// What every mark of this form begins with; another form would get another number.
const VERSION: &str = "pb1";

impl fmt::Display for CallbackMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}.{}.{}", self.event_id.hyphenated(), self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mark_names_its_event_and_its_attempt() {
        let text = "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.3";
        let mark = CallbackMark::parse(text).unwrap();
        assert_eq!((mark.event_id.to_string(), mark.attempt), (text[4..40].to_owned(), 3));
        assert_eq!(mark.to_string(), text);
    }

    #[test]
    fn what_is_not_exactly_a_mark_is_none() {
        for text in [
            "",
            "pb1",
            "pb1.",
            "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001",
            "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.",
            "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.0",
            "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.01",
            "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.+1",
            "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.-1",
            "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.1.1",
            "pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.4294967296",
            "pb1.0190F2A4-6c3e-7b1a-8c2d-000000000001.1",
            "pb1.0190f2a46c3e7b1a8c2d000000000001.1",
            "pb2.0190f2a4-6c3e-7b1a-8c2d-000000000001.1",
            " pb1.0190f2a4-6c3e-7b1a-8c2d-000000000001.1",
            "order-4711",
        ] {
            assert_eq!(CallbackMark::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_mark_is_read_back_and_fits(id in any::<u128>(), attempt in 1..=u32::MAX) {
            let mark = CallbackMark { event_id: Uuid::from_u128(id), attempt };
            let text = mark.to_string();
            prop_assert!(text.len() <= CallbackMark::MAX_BYTES);
            prop_assert_eq!(CallbackMark::parse(&text), Some(mark));
        }

        #[test]
        fn no_text_makes_reading_fail(text in "\\PC{0,80}") {
            let _ = CallbackMark::parse(&text);
        }
    }
}
