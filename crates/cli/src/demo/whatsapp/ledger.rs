//! What is on the phones, against the orders in the database.

use postbox_fake_whatsapp::Ledger as Phones;
use rusqlite::Connection;

use super::buyer::{BUYERS, Buyer, Fate};

/// The account of one buyer.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Account {
    /// Who.
    pub(crate) buyer: &'static str,
    /// What happened on the way.
    pub(crate) what_happened: &'static str,
    /// Orders of theirs that committed.
    pub(crate) orders: u64,
    /// Confirmations on their phone.
    pub(crate) messages: u64,
    /// Where the delivery stands.
    pub(crate) state: String,
    /// How far the message has come, as Meta reported.
    pub(crate) reported: String,
}

/// All accounts.
#[derive(Debug, serde::Serialize)]
pub(crate) struct WhatsappLedger {
    /// One for each buyer.
    pub(crate) buyers: Vec<Account>,
    /// Buyers with fewer messages than orders.
    pub(crate) lost: u64,
    /// Buyers with more messages than orders.
    pub(crate) duplicates: u64,
    /// Events that the webhook wrote when a message was read.
    pub(crate) follow_ups: u64,
}

impl WhatsappLedger {
    /// Reads database and phones.
    pub(super) fn of(database: &Connection, phones: &Phones) -> rusqlite::Result<Self> {
        let buyers: Vec<Account> =
            BUYERS.into_iter().map(|buyer| account(database, phones, buyer)).collect::<Result<_, _>>()?;
        let count = |holds: &dyn Fn(&Account) -> bool| {
            u64::try_from(buyers.iter().filter(|account| holds(account)).count()).unwrap_or(u64::MAX)
        };
        Ok(Self {
            lost: count(&|account| account.messages < account.orders),
            duplicates: count(&|account| account.messages > account.orders),
            follow_ups: number(
                database,
                "SELECT count(*) FROM outbox WHERE event_type = 'whatsapp.status.read'",
                [],
            )?,
            buyers,
        })
    }

    /// Whether every order that committed has one confirmation, delivered and read, and nothing else has one.
    pub(crate) fn adds_up(&self) -> bool {
        let fine = |account: &Account| {
            account.messages == account.orders
                && (account.orders == 0 || (account.state == "delivered" && account.reported == "read"))
        };
        self.buyers.iter().all(fine)
    }
}

fn account(database: &Connection, phones: &Phones, buyer: Buyer) -> rusqlite::Result<Account> {
    let text = |query: &str| -> rusqlite::Result<String> {
        let found = database.query_row(query, [buyer.name], |row| row.get::<_, Option<String>>(0));
        match found {
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(String::new()),
            other => Ok(other?.unwrap_or_default()),
        }
    };
    Ok(Account {
        buyer: buyer.name,
        what_happened: what_happened(buyer.fate),
        orders: number(database, "SELECT count(*) FROM purchases WHERE buyer = ?1", [buyer.name])?,
        messages: u64::try_from(phones.phone(buyer.phone).len()).unwrap_or(u64::MAX),
        state: text(
            "SELECT d.state FROM outbox_delivery AS d JOIN outbox AS e ON e.id = d.outbox_id
             WHERE e.aggregate_id = ?1 AND d.destination = 'shop'",
        )?,
        reported: text(
            "SELECT r.status FROM outbox_report AS r JOIN outbox AS e ON e.id = r.outbox_id
             WHERE e.aggregate_id = ?1 AND e.aggregate_type = 'whatsapp/shop'
             ORDER BY CASE r.status WHEN 'read' THEN 4 WHEN 'delivered' THEN 3 WHEN 'failed' THEN 2 ELSE 1 END DESC
             LIMIT 1",
        )?,
    })
}

fn number<const N: usize>(database: &Connection, query: &str, values: [&str; N]) -> rusqlite::Result<u64> {
    database
        .query_row(query, rusqlite::params_from_iter(values), |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

fn what_happened(fate: Fate) -> &'static str {
    match fate {
        Fate::Fine => "nothing went wrong",
        Fate::Killed => "the relay was killed with the request on its way; a status told that Meta had it",
        Fate::AnswerLost => "Meta's answer was lost; a status told that Meta had it",
        Fate::RequestLost => "the request was lost and no status came; held, then sent again by an operator",
        Fate::Suspended => "the account was suspended; everything waited, and went on with one command",
        Fate::RolledBack => "the order was rolled back",
    }
}
