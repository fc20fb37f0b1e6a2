//! One connection: requests in, answers out.

use std::io;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::api::Shared;
use crate::check::check;
use crate::http::{self, Request};
use crate::ledger::Message;
use crate::mood::{Mood, Take};
use crate::refusal::Refusal;

/// Serves `stream` to its end. Errors of the connection are the peer's business.
pub(crate) async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let _ = requests(&mut stream, &shared).await;
}

async fn requests(stream: &mut TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        if buffer.is_empty() && stream.peek(&mut [0]).await? > 0 && shared.resets_now() {
            return reset(stream);
        }
        let Some(request) = http::read(stream, &mut buffer).await? else { return Ok(()) };
        shared.count_request();
        let (reaction, taken) = treat(&request, shared).await;
        // Known before the answer, so that whoever has the answer can wait for the statuses; sent after it.
        let answered = taken.map(|(message, mood)| shared.report_later(message, mood));
        if let Reaction::Answer(status, body) = &reaction {
            stream.write_all(&http::answer(*status, body)).await?;
        }
        drop(answered);
        match reaction {
            Reaction::Answer(..) => {}
            Reaction::Reset => return reset(stream),
            Reaction::Silence => return silence(stream).await,
        }
    }
}

enum Reaction {
    Answer(u16, String),
    Reset,
    Silence,
}

/// What is answered, and the message that was taken if its statuses are still to come.
async fn treat(request: &Request, shared: &Arc<Shared>) -> (Reaction, Option<(Message, Mood)>) {
    let checked = match check(request, &shared.settings()) {
        Ok(checked) => checked,
        Err(refusal) => return (refused(&refusal), None),
    };
    let (incoming, mood) = shared.choose(checked);
    let input = incoming.body.get("to").or(incoming.body.get("recipient")).cloned();
    let take = mood.take.clone();
    let message = match take {
        Take::Accepted | Take::ThenReset | Take::ThenSilence => Some(shared.take(incoming)),
        Take::Refused(_) | Take::Answered(..) | Take::Reset => None,
    };
    tokio::time::sleep(mood.pause).await;
    let reaction = match (take, &message) {
        (Take::Accepted, Some(message)) => Reaction::Answer(200, accepted(message, input.as_ref())),
        (Take::ThenSilence, _) => Reaction::Silence,
        (Take::Refused(code), _) => refused(&Refusal::of(code)),
        (Take::Answered(status, body), _) => Reaction::Answer(status, body),
        (Take::Accepted | Take::ThenReset | Take::Reset, _) => Reaction::Reset,
    };
    match message {
        Some(message) if mood.statuses_first => {
            shared.report(&message, &mood).await;
            (reaction, None)
        }
        message => (reaction, message.map(|message| (message, mood))),
    }
}

fn refused(refusal: &Refusal) -> Reaction {
    Reaction::Answer(refusal.status, refusal.body().to_string())
}

fn accepted(message: &Message, input: Option<&serde_json::Value>) -> String {
    json!({
        "messaging_product": "whatsapp",
        "contacts": [{ "input": input, "wa_id": message.to }],
        "messages": [{ "id": message.wamid, "message_status": "accepted" }],
    })
    .to_string()
}

/// Ends the connection with a reset instead of an orderly close.
fn reset(stream: &TcpStream) -> io::Result<()> {
    stream.set_zero_linger()
}

/// Keeps the connection open until the peer ends it.
async fn silence(stream: &mut TcpStream) -> io::Result<()> {
    let mut ignored = [0; 1024];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}
