//! The course of events.

use std::time::Duration;

use rusqlite::{Connection, Row};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::ledger::Ledger;
use super::narration::Narration;
use super::problem::Problem;
use super::receiver::{LOST_ANSWERS_PERCENT, REFUSED_PERCENT, Receiver, Tick};
use super::relay_process::{RelayProcess, was_killed};
use super::shop::{Sales, Shop, ShopError};
use super::stage::{LEASE, Stage};

/// Without a single further delivery for this long, the rest is given up as lost.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often the outbox is asked whether anything is left, and the progress shown.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The demo.
#[derive(Debug)]
pub(crate) struct Play {
    /// Orders that the shop takes.
    pub(crate) orders: u64,
    /// Decides which orders are rolled back and what the receiver does with each request.
    pub(crate) seed: u64,
}

/// Everything that is on during the play.
struct Scene<'a> {
    stage: &'a Stage,
    receiver: Receiver,
    narration: Narration,
    sales: watch::Receiver<Sales>,
    taken: watch::Receiver<u64>,
    outbox: Connection,
}

impl Play {
    /// Plays it on `stage` and adds up.
    ///
    /// # Errors
    /// When something that the demo needs does not work. A ledger that does not add up is none.
    pub(crate) async fn run(&self, stage: &Stage) -> Result<Ledger, Problem> {
        let receiver =
            Receiver::open(self.seed).await.map_err(Problem::because("the receiver cannot open"))?;
        stage.configure(&receiver.url())?;
        let (sales, closing) = (watch::Sender::new(Sales::default()), CancellationToken::new());
        let scene = Scene {
            taken: receiver.taken(),
            sales: sales.subscribe(),
            outbox: stage.connect()?,
            narration: Narration::begin(self.orders),
            receiver,
            stage,
        };
        scene.narration.tell(&format!(
            "the shop opens: {} orders, each an aggregate with up to 3 events, on embedded SQLite",
            self.orders
        ));
        scene.narration.tell(&format!(
            "the receiver at {} refuses {REFUSED_PERCENT} % of the requests and loses {LOST_ANSWERS_PERCENT} % of its answers",
            scene.receiver.url()
        ));
        let shop = Shop {
            database: stage.database(),
            orders: self.orders,
            seed: self.seed,
            sales,
            cancelled: closing.clone(),
        };
        // However this ends, the shop closes.
        let _closed_in_the_end = closing.drop_guard();
        let shop = tokio::task::spawn_blocking(|| shop.trade());
        let kill = self.acts(scene.start_relay()?, &scene, shop).await?;
        scene.narration.end();
        let (orders, rolled_back) = (scene.orders()?, scene.sales.borrow().rolled_back);
        Ok(Ledger::of(&orders, rolled_back, &scene.receiver.record(), kill))
    }

    /// Relay, kill, second relay, graceful end. Tells the moment of the kill.
    async fn acts(
        &self,
        mut relay: RelayProcess,
        scene: &Scene<'_>,
        shop: JoinHandle<Result<(), ShopError>>,
    ) -> Result<Tick, Problem> {
        // About a third of all events: one per order.
        scene.until_delivered(self.orders, &mut relay).await?;
        let pid = relay.pid();
        let status = relay.kill().await?;
        let kill = scene.receiver.now();
        if !was_killed(status) {
            return Err(Problem::new(format!(
                "the relay was to die by SIGKILL, and ended otherwise: {status}"
            )));
        }
        let events = scene.sales.borrow().events;
        scene.narration.tell(&format!(
            "kill -9 {pid}: no relay any more, {} requests taken so far; the shop goes on",
            *scene.taken.borrow()
        ));
        scene.until_sold(events + self.orders / 4).await;
        let mut relay = scene.start_relay()?;
        scene.narration.tell(&format!(
            "a new relay waits until the lease of the dead one has run out ({} s)",
            LEASE.as_secs()
        ));
        scene.until_sold(u64::MAX).await;
        let closed = shop.await.map_err(Problem::because("the shop broke off"))?;
        closed.map_err(Problem::because("the shop could not write"))?;
        let sales = *scene.sales.borrow();
        scene.narration.tell(&format!(
            "the shop has closed: {} orders committed, {} rolled back",
            sales.committed, sales.rolled_back
        ));
        if scene.until_drained(&mut relay).await? {
            scene.narration.tell("nothing is left to do; the relay is asked to end (SIGTERM)");
        } else {
            scene.narration.tell("nothing more arrives, although something is left to do");
        }
        let pid = relay.pid();
        let status = relay.stop().await?;
        scene.narration.tell(&format!("relay {pid} has ended: {status}"));
        if status.success() { Ok(kill) } else { Err(Problem::new("the relay did not end gracefully")) }
    }
}

impl Scene<'_> {
    fn start_relay(&self) -> Result<RelayProcess, Problem> {
        let relay = RelayProcess::start(self.stage)?;
        self.narration.tell(&format!("relay {} starts", relay.pid()));
        Ok(relay)
    }

    /// Waits until the receiver took `count` events, or until there are no more.
    async fn until_delivered(&self, count: u64, relay: &mut RelayProcess) -> Result<(), Problem> {
        let mut taken = self.taken.clone();
        let enough = taken.wait_for(|&taken| taken >= count);
        let closed_and_drained = async {
            self.until_sold(u64::MAX).await;
            self.until_drained_or_stuck().await
        };
        tokio::select! {
            _ = enough => Ok(()),
            drained = closed_and_drained => drained.map(drop),
            problem = relay.ended() => Err(problem.with_help(self.stage.end_of_relay_log())),
            () = self.show_progress() => Ok(()),
        }
    }

    /// Waits until the shop has written `events` events or closed.
    async fn until_sold(&self, events: u64) {
        let mut sales = self.sales.clone();
        // An error says that the shop is gone; whoever awaits it learns why.
        tokio::select! {
            _ = sales.wait_for(|sales| sales.closed || sales.events >= events) => {}
            () = self.show_progress() => {}
        }
    }

    /// Whether everything got off the to-do list, before nothing moved any more.
    async fn until_drained(&self, relay: &mut RelayProcess) -> Result<bool, Problem> {
        tokio::select! {
            drained = self.until_drained_or_stuck() => drained,
            problem = relay.ended() => Err(problem.with_help(self.stage.end_of_relay_log())),
            () = self.show_progress() => Ok(true),
        }
    }

    async fn until_drained_or_stuck(&self) -> Result<bool, Problem> {
        let mut taken = self.taken.clone();
        loop {
            let last = *taken.borrow_and_update();
            let moved = tokio::time::timeout(PATIENCE, async {
                loop {
                    if self.is_drained()? {
                        return Ok(true);
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                    if *taken.borrow() > last {
                        return Ok(false);
                    }
                }
            });
            match moved.await {
                Ok(Ok(false)) => {}
                Ok(done_or_problem) => return done_or_problem,
                Err(_) => return Ok(false),
            }
        }
    }

    fn is_drained(&self) -> Result<bool, Problem> {
        self.outbox
            .query_row("SELECT pending + struggling = 0 FROM outbox_health", [], |row| row.get(0))
            .map_err(Problem::because("the outbox cannot be read"))
    }

    fn orders(&self) -> Result<Vec<(u64, u64)>, Problem> {
        let read = || -> rusqlite::Result<Vec<(u64, u64)>> {
            let mut statement = self.outbox.prepare("SELECT number, steps FROM orders")?;
            let number = |row: &Row<'_>, column| row.get(column).map(i64::cast_unsigned);
            statement.query_map([], |row| Ok((number(row, 0)?, number(row, 1)?)))?.collect()
        };
        read().map_err(Problem::because("the shop's orders cannot be read"))
    }

    /// Shows it for ever.
    async fn show_progress(&self) {
        loop {
            let sales = *self.sales.borrow();
            self.narration.progress(sales.committed + sales.rolled_back, *self.taken.borrow());
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
