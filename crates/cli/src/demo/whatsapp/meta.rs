//! Meta's side: what the fake Cloud API does with each buyer's message.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use postbox_fake_whatsapp::{FakeApi, Incoming, Mood, Plan, Settings, Take};

use super::buyer::{Buyer, Fate};
use crate::demo::problem::Problem;

/// The account has a problem with its payment method (WhatsApp error codes).
const PAYMENT_PROBLEM: u32 = 131_042;

/// A buyer's phone takes this long to show a message.
const LATENCY: Duration = Duration::from_millis(50);

/// Starts it.
pub(super) async fn start(token: &str) -> Result<FakeApi, Problem> {
    let settings = Settings {
        token: token.to_owned(),
        templates: Some(vec![("order_confirmed".to_owned(), 2)]),
        ..Settings::default()
    };
    let seen: Mutex<HashMap<String, usize>> = Mutex::default();
    let plan = Plan::each(move |incoming| {
        let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let times = seen.entry(incoming.to.clone()).or_insert(0);
        *times += 1;
        mood(incoming, *times)
    });
    FakeApi::start(settings, plan).await.map_err(Problem::because("the fake Cloud API cannot open"))
}

fn mood(incoming: &Incoming, times: usize) -> Mood {
    let fine = Mood { pause: LATENCY, ..Mood::accept() };
    let first = times == 1;
    match Buyer::with_phone(&incoming.to).map(|buyer| buyer.fate) {
        Some(Fate::Killed) if first => Mood { take: Take::ThenSilence, ..fine },
        Some(Fate::AnswerLost) if first => Mood { take: Take::ThenReset, ..fine },
        Some(Fate::RequestLost) if first => Mood { take: Take::Reset, ..fine.in_silence() },
        Some(Fate::Suspended) if first => Mood::refuse(PAYMENT_PROBLEM),
        _ => fine,
    }
}
