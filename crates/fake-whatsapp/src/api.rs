//! The API itself.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use crate::callback::Callback;
use crate::check::Checked;
use crate::connection;
use crate::ledger::{Ledger, Message};
use crate::mood::{Incoming, Mood, Plan};
use crate::status;

/// What the API knows of its customer.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The id of the only number that may send.
    pub phone_number_id: String,
    /// The number itself, in digits.
    pub display_phone_number: String,
    /// The id of the WhatsApp Business Account.
    pub business_account_id: String,
    /// The only token that is accepted.
    pub token: String,
    /// Approved templates and how many parameters the body of each has; `None` accepts any.
    pub templates: Option<Vec<(String, usize)>>,
    /// Who is told of statuses.
    pub callback: Option<Callback>,
}

impl Default for Settings {
    /// The number and the account of Meta's examples, any template, nobody to tell.
    fn default() -> Self {
        Self {
            phone_number_id: "106540352242922".to_owned(),
            display_phone_number: "15550783881".to_owned(),
            business_account_id: "102290129340398".to_owned(),
            token: "EAAGfakeaccesstoken".to_owned(),
            templates: None,
            callback: None,
        }
    }
}

/// A running API; dropping it closes everything it has open.
#[derive(Debug)]
pub struct FakeApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl FakeApi {
    /// Starts one on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(settings: Settings, plan: Plan) -> io::Result<Self> {
        Self::serve(TcpListener::bind("127.0.0.1:0").await?, settings, plan)
    }

    /// Starts one on a port that is bound already.
    ///
    /// # Errors
    /// When the port has no address.
    pub fn serve(listener: TcpListener, settings: Settings, plan: Plan) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            settings: Mutex::new(Arc::new(settings)),
            plan: Mutex::new(plan),
            ledger: Ledger::new(),
            arrivals: AtomicUsize::new(0),
            requests: watch::Sender::new(0),
            resets: AtomicUsize::new(0),
            held: Mutex::new(None),
            calls: Mutex::new(JoinSet::new()),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// What a sender takes for the Graph API's address: `http://127.0.0.1:port`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it has taken.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    /// From the next message on.
    pub fn set_plan(&self, plan: Plan) {
        *self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// From the next status on.
    pub fn set_callback(&self, callback: Option<Callback>) {
        let mut settings = self.shared.settings.lock().unwrap_or_else(PoisonError::into_inner);
        *settings = Arc::new(Settings { callback, ..Settings::clone(&settings) });
    }

    /// Resets the next `count` connections that bring a request, before a byte of it is read.
    pub fn reset_before_reading(&self, count: usize) {
        self.shared.resets.store(count, Ordering::Relaxed);
    }

    /// Keeps statuses back until [`Self::send_held_statuses`].
    pub fn hold_statuses(&self) {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }

    /// Sends everything held back in one call, and holds nothing back any more; returns once it was taken.
    pub async fn send_held_statuses(&self) {
        let held = self.shared.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.shared.tell(&held.unwrap_or_default()).await;
    }

    /// How many requests were read, whatever became of them.
    #[must_use]
    pub fn requests(&self) -> usize {
        *self.shared.requests.borrow()
    }

    /// Waits until `count` requests were read.
    pub async fn wait_for_requests(&self, count: usize) {
        // The sender is in `self`, so the wait cannot fail.
        let _ = self.shared.requests.subscribe().wait_for(|read| *read >= count).await;
    }

    /// Waits until every status that is not held back was taken by the callback.
    pub async fn wait_for_statuses(&self) {
        loop {
            let mut calls =
                std::mem::take(&mut *self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner));
            if calls.is_empty() {
                return;
            }
            while calls.join_next().await.is_some() {}
        }
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

/// What connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    settings: Mutex<Arc<Settings>>,
    plan: Mutex<Plan>,
    ledger: Ledger,
    arrivals: AtomicUsize,
    requests: watch::Sender<usize>,
    resets: AtomicUsize,
    /// Statuses that are kept back; `None` when they are sent at once.
    held: Mutex<Option<Vec<Value>>>,
    calls: Mutex<JoinSet<()>>,
}

impl Shared {
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count_request(&self) {
        self.requests.send_modify(|count| *count += 1);
    }

    /// Whether the connection at hand is one of those to be reset.
    pub(crate) fn resets_now(&self) -> bool {
        self.resets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// What the plan says of a request that passed every check.
    pub(crate) fn choose(&self, checked: Checked) -> (Incoming, Mood) {
        let arrival = self.arrivals.fetch_add(1, Ordering::Relaxed);
        let incoming = Incoming { arrival, to: checked.to, mark: checked.mark, body: checked.body };
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mood = plan.choose(&incoming);
        (incoming, mood)
    }

    /// Takes a message.
    pub(crate) fn take(&self, incoming: Incoming) -> Message {
        let message = Message { wamid: wamid(), to: incoming.to, mark: incoming.mark, body: incoming.body };
        self.ledger.take(message.clone());
        message
    }

    /// Sends the statuses of `mood` one call after the other, or keeps them back.
    pub(crate) async fn report(&self, message: &Message, mood: &Mood) {
        for status in &mood.statuses {
            let object = status.object(message);
            let kept = match &mut *self.held.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(held) => {
                    held.push(object.clone());
                    true
                }
                None => false,
            };
            if !kept {
                self.tell(std::slice::from_ref(&object)).await;
            }
        }
    }

    /// The same beside everything else, once what it returns is dropped.
    pub(crate) fn report_later(self: &Arc<Self>, message: Message, mood: Mood) -> oneshot::Sender<()> {
        let (answered, answer) = oneshot::channel();
        let shared = Arc::clone(self);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        while calls.try_join_next().is_some() {}
        calls.spawn(async move {
            // It never brings anything: its end is the sign.
            let _ = answer.await;
            shared.report(&message, &mood).await;
        });
        answered
    }

    async fn tell(&self, statuses: &[Value]) {
        let settings = self.settings();
        if let Some(callback) = settings.callback.as_ref().filter(|_| !statuses.is_empty()) {
            callback.call(&status::call(&settings, statuses)).await;
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, which ends all connections.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(connection::serve(stream, Arc::clone(&shared)));
    }
}

/// An id of the form that Meta's have.
fn wamid() -> String {
    format!("wamid.{}", STANDARD.encode(Uuid::now_v7().simple().to_string()))
}
