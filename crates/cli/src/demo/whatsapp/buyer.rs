//! The buyers, and what happens to each one's confirmation.

/// What happens to a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Everything works.
    Fine,
    /// The relay is killed while Meta has the request and nobody has the answer.
    Killed,
    /// Meta takes the message and resets the connection instead of answering.
    AnswerLost,
    /// The connection is reset after the request was written; Meta has taken nothing, and so no status comes.
    RequestLost,
    /// Meta says that the account may not send.
    Suspended,
    /// The shop's transaction is rolled back.
    RolledBack,
}

/// A buyer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buyer {
    pub(super) name: &'static str,
    /// Digits, as WhatsApp has them.
    pub(super) phone: &'static str,
    pub(super) fate: Fate,
}

/// All of them, in the order in which they buy. The numbers are of the range that Germany keeps for fiction.
pub(super) const BUYERS: [Buyer; 6] = [
    Buyer { name: "Ann", phone: "4917139200010", fate: Fate::Fine },
    Buyer { name: "Ben", phone: "4917139200011", fate: Fate::Killed },
    Buyer { name: "Cleo", phone: "4917139200012", fate: Fate::AnswerLost },
    Buyer { name: "Dan", phone: "4917139200013", fate: Fate::RequestLost },
    Buyer { name: "Eve", phone: "4917139200014", fate: Fate::Suspended },
    Buyer { name: "Finn", phone: "4917139200015", fate: Fate::RolledBack },
];

impl Buyer {
    /// The one who has this phone.
    pub(super) fn with_phone(phone: &str) -> Option<Self> {
        BUYERS.into_iter().find(|buyer| buyer.phone == phone)
    }
}
