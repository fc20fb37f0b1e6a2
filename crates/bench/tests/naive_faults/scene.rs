//! An outbox of either kind, in a database of its own, and a receiver.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use postbox_bench::naive::{self, Pool, Post, Settings, Worker};
use postbox_core::destination::Destination;
use postbox_core::operations::Operations as _;
use postbox_core::route::Route;
use postbox_postgres::PostgresStore;
use postbox_relay::{Binding, RelayConfig, RelayError, Summary};
use postbox_sinks::webhook::{WebhookConfig, WebhookSink};
use postbox_testkit::ledger::Ledger;
use postbox_testkit::postgres::{Database, PgCluster};
use postbox_testkit::receiver::{Receiver, Script};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Longest wait for anything: a machine that is busy otherwise shall not fail a test.
const PATIENCE: Duration = Duration::from_secs(90);

/// What both kinds have.
pub(crate) struct Outbox {
    pub(crate) database: Database<'static>,
    pub(crate) receiver: Receiver,
    client: Client,
    /// Selects the identities of all events, and of those that were given up.
    events: &'static str,
    given_up: &'static str,
}

impl Outbox {
    pub(crate) async fn connect(&self) -> Client {
        connect(&self.database).await
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.client.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Waits until `query` gives `expected`.
    pub(crate) async fn becomes(&self, query: &str, expected: i64) {
        let began = Instant::now();
        loop {
            let found = self.number(query).await;
            if found == expected {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "waited in vain for {expected}, found {found}: {query}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What the receiver got of all that was committed.
    pub(crate) async fn ledger(&self) -> Ledger {
        let (events, given_up) = (self.identities(self.events).await, self.identities(self.given_up).await);
        Ledger::of(&self.receiver.entries(), &events, &given_up)
    }

    async fn identities(&self, query: &str) -> HashSet<Uuid> {
        self.client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

async fn connect(database: &Database<'_>) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The events of a case: so many for each of so many aggregates, `order-000`, `order-001`, …
#[derive(Debug, Clone, Copy)]
pub(crate) struct Events {
    pub(crate) aggregates: i64,
    pub(crate) each: i64,
    /// Whether an aggregate's events stand together, or the aggregates take turns.
    pub(crate) together: bool,
}

/// The naive reference.
pub(crate) struct Reference(pub(crate) Outbox);

impl Reference {
    pub(crate) async fn set(script: Script) -> Self {
        let database = PgCluster::shared().database();
        let client = connect(&database).await;
        naive::migrate(&client).await.unwrap();
        let receiver = Receiver::start(script).await;
        let events = "SELECT event_id FROM naive_outbox";
        let given_up = "SELECT event_id FROM naive_outbox WHERE status = 'dead'";
        Self(Outbox { database, receiver, client, events, given_up })
    }

    pub(crate) async fn write(&self, events: Events) {
        let Events { aggregates, each, together } = events;
        let insert = include_str!("write_reference.sql");
        self.0.client.execute(insert, &[&aggregates, &each, &together]).await.unwrap();
    }

    pub(crate) async fn worker(&self, settings: Settings) -> Worker {
        Worker::prepare(self.0.connect().await, self.post(), settings).await.unwrap()
    }

    pub(crate) async fn pool(&self, threads: usize, settings: Settings) -> Pool {
        let posts = (0..threads).map(|_| self.post()).collect();
        Pool::prepare(self.0.connect().await, posts, settings).await.unwrap()
    }

    fn post(&self) -> Post {
        Post::new(&self.0.receiver.url()).unwrap()
    }

    /// Lets so many workers work beside each other, each until it finds nothing claimable.
    pub(crate) async fn work(&self, workers: usize, settings: Settings) {
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let mut worker = self.worker(settings.clone()).await;
            tasks.spawn(async move { worker.work_until_empty().await });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap().unwrap();
        }
    }

    /// Lets a worker look for rows again and again until none is pending.
    pub(crate) async fn work_until_finished(&self, settings: Settings) {
        let mut worker = self.worker(settings).await;
        while self.pending().await > 0 {
            if worker.work_batch().await.unwrap().claimed == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    pub(crate) async fn pending(&self) -> i64 {
        self.0.number("SELECT count(*) FROM naive_outbox WHERE status = 'pending'").await
    }
}

/// Postbox.
pub(crate) struct Postbox {
    pub(crate) outbox: Outbox,
    pub(crate) store: PostgresStore,
}

impl Postbox {
    pub(crate) async fn set(script: Script) -> Self {
        let database = PgCluster::shared().database();
        let store = PostgresStore::connect(&database.url(), None).unwrap();
        store.migrate().await.unwrap();
        let client = connect(&database).await;
        let receiver = Receiver::start(script).await;
        let events = "SELECT event_id FROM outbox";
        let given_up =
            "SELECT event_id FROM outbox JOIN outbox_delivery ON outbox_id = id WHERE state = 'dead'";
        Self { outbox: Outbox { database, receiver, client, events, given_up }, store }
    }

    pub(crate) async fn write(&self, events: Events) {
        let Events { aggregates, each, together } = events;
        let insert = include_str!("write_postbox.sql");
        self.outbox.client.execute(insert, &[&aggregates, &each, &together]).await.unwrap();
    }

    /// Starts relays that deliver to the receiver by `destination`, and waits until they share the shards.
    pub(crate) async fn relays(
        &self,
        relays: usize,
        lease_ttl: Duration,
        destination: &Destination,
    ) -> Relays {
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for _ in 0..relays {
            let store = PostgresStore::connect(&self.outbox.database.url(), None).unwrap();
            let config = WebhookConfig {
                concurrency: destination.concurrency,
                ..WebhookConfig::new(self.outbox.receiver.url())
            };
            let sink = Arc::new(WebhookSink::new(config).unwrap());
            let bindings = vec![Binding { destination: destination.clone(), sink }];
            let config = RelayConfig { lease_ttl, ..RelayConfig::default() };
            tasks.spawn(postbox_relay::run(config, Arc::new(store), bindings, shutdown.clone()));
        }
        let share = 64 / i64::try_from(relays).unwrap();
        let fair = format!(
            "SELECT count(*) FROM (SELECT FROM outbox_shard WHERE owner IS NOT NULL
             GROUP BY owner HAVING count(*) = {share}) AS fair"
        );
        self.outbox.becomes(&fair, i64::try_from(relays).unwrap()).await;
        Relays { shutdown, tasks }
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn drained(&self) {
        self.outbox.becomes("SELECT pending + struggling FROM outbox_health", 0).await;
    }

    /// Drains what was written with one relay.
    pub(crate) async fn drain(&self, destination: &Destination) {
        let relays = self.relays(1, LEASE, destination).await;
        self.drained().await;
        relays.stop().await;
    }
}

/// A lease that no machine is too slow to renew, and still soon shared with a second relay.
pub(crate) const LEASE: Duration = Duration::from_secs(6);

/// The receiver, tried again as the reference does it: eight times, almost at once, and without a breaker, so that what
/// a case shows comes from lanes and leases alone.
pub(crate) fn eager() -> Destination {
    let mut destination = Destination::new("receiver", Route::default());
    destination.timeout = Duration::from_secs(3);
    destination.breaker = None;
    destination.retry.delays = vec![Duration::from_millis(1)];
    destination
}

/// Running relays.
pub(crate) struct Relays {
    shutdown: CancellationToken,
    tasks: JoinSet<Result<Summary, RelayError>>,
}

impl Relays {
    /// Stops them in order.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        while let Some(done) = self.tasks.join_next().await {
            assert_eq!(done.unwrap().unwrap().abandoned, 0);
        }
    }
}
