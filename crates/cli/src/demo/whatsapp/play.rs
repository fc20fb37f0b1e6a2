//! The course of events.

use std::process::Stdio;
use std::time::Duration;

use postbox_fake_whatsapp::{Callback, FakeApi};
use rusqlite::Connection;
use tokio::process::Command;
use uuid::Uuid;

use super::buyer::{BUYERS, Buyer, Fate};
use super::ledger::WhatsappLedger;
use super::meta;
use super::webhook_process::WebhookProcess;
use crate::demo::narration::Narration;
use crate::demo::problem::Problem;
use crate::demo::relay_process::RelayProcess;
use crate::demo::stage::{LEASE, Stage};

/// Longest wait for any step.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the demo's shop, relay and Meta know; none of it is worth keeping secret.
const TOKEN: &str = "EAAGdemo";
const VERIFY_TOKEN: &str = "demo-verify-token";
const APP_SECRET: &str = "demo-app-secret";

/// The demo.
#[derive(Debug)]
pub(crate) struct WhatsappPlay;

struct Scene<'a> {
    stage: &'a Stage,
    api: FakeApi,
    shop: Connection,
    narration: Narration,
}

impl WhatsappPlay {
    /// Plays it on `stage` and adds up.
    ///
    /// # Errors
    /// When something that the demo needs does not work. A ledger that does not add up is none.
    pub(crate) async fn run(&self, stage: &Stage) -> Result<WhatsappLedger, Problem> {
        let api = meta::start(TOKEN).await?;
        stage.configure_whatsapp(
            &api.base_url(),
            [("token", TOKEN), ("verify-token", VERIFY_TOKEN), ("app-secret", APP_SECRET)],
        )?;
        let webhook = WebhookProcess::start(stage).await?;
        let callback = Callback::new(webhook.url(), APP_SECRET).map_err(Problem::new)?;
        let verified = callback.verify(VERIFY_TOKEN, "1158201444").await;
        if verified.map_err(Problem::because("the webhook does not answer"))?.0 != 200 {
            return Err(Problem::new("the webhook does not know its verify token"));
        }
        api.set_callback(Some(callback));
        let scene =
            Scene { stage, api, shop: stage.connect()?, narration: Narration::begin(BUYERS.len() as u64) };
        scene.tell(&format!(
            "a fake Cloud API at {}, our webhook at {}",
            scene.api.base_url(),
            webhook.url()
        ));
        scene.acts().await?;
        scene.narration.end();
        WhatsappLedger::of(&scene.shop, scene.api.ledger())
            .map_err(Problem::because("the ledger cannot be read"))
    }
}

impl Scene<'_> {
    fn tell(&self, text: &str) {
        self.narration.tell(text);
    }

    async fn acts(&self) -> Result<(), Problem> {
        let mut relay = RelayProcess::start(self.stage)?;
        for buyer in BUYERS {
            self.tell(&format!("{} orders; order and confirmation are one transaction", buyer.name));
            let event_id = self.order(buyer)?;
            match buyer.fate {
                Fate::Fine => {}
                Fate::RolledBack => {
                    self.tell(&format!("{}'s transaction is rolled back", buyer.name));
                    continue;
                }
                Fate::Killed => relay = self.kill_with_the_request_on_its_way(buyer, relay).await?,
                Fate::AnswerLost => self.tell(
                    "Meta takes the message and loses its answer: nobody knows, but a status will tell",
                ),
                Fate::RequestLost => self.hold_and_send_again(event_id).await?,
                Fate::Suspended => self.resume_after_suspension().await?,
            }
            self.until(&format!("{}'s message is read", buyer.name), || self.is_read(event_id)).await?;
            self.tell(&format!("{} has read it", buyer.name));
        }
        relay.stop().await?;
        Ok(())
    }

    async fn kill_with_the_request_on_its_way(
        &self,
        buyer: Buyer,
        relay: RelayProcess,
    ) -> Result<RelayProcess, Problem> {
        self.api.hold_statuses();
        let arrived = || Ok(!self.api.ledger().phone(buyer.phone).is_empty());
        self.until("the request is with Meta", arrived).await?;
        let pid = relay.pid();
        relay.kill().await?;
        self.tell(&format!(
            "kill -9 {pid}: Meta has the request, nobody has the answer; the database knows that it began"
        ));
        self.api.send_held_statuses().await;
        let relay = RelayProcess::start(self.stage)?;
        self.tell(&format!(
            "a new relay waits until the lease of the dead one has run out ({} s)",
            LEASE.as_secs()
        ));
        Ok(relay)
    }

    async fn hold_and_send_again(&self, event_id: Uuid) -> Result<(), Problem> {
        self.tell("the connection breaks after the request; no status comes, as Meta has taken nothing");
        self.until("it is held", || self.is_in(event_id, "held")).await?;
        self.tell(
            "evidence_wait is over: held for an operator, since sending again could be a second message",
        );
        self.command(&["dead-letters", "replay", &event_id.to_string(), "--yes"]).await
    }

    async fn resume_after_suspension(&self) -> Result<(), Problem> {
        let disabled = "SELECT EXISTS (SELECT 1 FROM outbox_destination WHERE disabled_at IS NOT NULL)";
        self.until("the number is disabled", || self.holds(disabled, [])).await?;
        self.tell("Meta suspends the account (131042, payment): the number is disabled, everything is kept");
        self.command(&["destinations", "enable", "shop"]).await
    }

    /// Runs a command of an operator.
    async fn command(&self, args: &[&str]) -> Result<(), Problem> {
        self.tell(&format!("postbox {}", args.join(" ")));
        let program = std::env::current_exe().map_err(Problem::because("this program cannot find itself"))?;
        let status = Command::new(program)
            .args(args)
            .arg("--config")
            .arg(self.stage.configuration())
            .current_dir(self.stage.folder())
            .env_remove("POSTBOX_DATABASE_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.stage.open_log()?)
            .status()
            .await
            .map_err(Problem::because("a command cannot be started"))?;
        if status.success() {
            return Ok(());
        }
        Err(Problem::new(format!("`postbox {}` ended with {status}", args.join(" "))))
    }

    /// The order and its confirmation, in one transaction.
    fn order(&self, buyer: Buyer) -> Result<Uuid, Problem> {
        let event_id = Uuid::now_v7();
        let payload = serde_json::json!({
            "to": format!("+{}", buyer.phone), "template": "order_confirmed", "params": [buyer.name, "cash on delivery"],
        });
        let write = || -> rusqlite::Result<()> {
            let transaction = self.shop.unchecked_transaction()?;
            transaction.execute("INSERT INTO purchases (buyer) VALUES (?1)", [buyer.name])?;
            transaction.execute(
                "INSERT INTO outbox (event_id, aggregate_type, aggregate_id, event_type, payload)
                 VALUES (?1, 'whatsapp/shop', ?2, 'order.confirmed', ?3)",
                [&event_id.to_string(), buyer.name, &payload.to_string()],
            )?;
            if buyer.fate == Fate::RolledBack { transaction.rollback() } else { transaction.commit() }
        };
        write().map_err(Problem::because("the shop could not write"))?;
        Ok(event_id)
    }

    fn is_in(&self, event_id: Uuid, state: &str) -> Result<bool, Problem> {
        self.holds(
            "SELECT EXISTS (SELECT 1 FROM outbox_delivery AS d JOIN outbox AS e ON e.id = d.outbox_id
                            WHERE e.event_id = ?1 AND d.state = ?2)",
            [&event_id.to_string(), state],
        )
    }

    fn is_read(&self, event_id: Uuid) -> Result<bool, Problem> {
        let reported = self.holds(
            "SELECT EXISTS (SELECT 1 FROM outbox_report AS r JOIN outbox AS e ON e.id = r.outbox_id
                            WHERE e.event_id = ?1 AND r.status = 'read')",
            [&event_id.to_string()],
        )?;
        Ok(reported && self.is_in(event_id, "delivered")?)
    }

    fn holds<const N: usize>(&self, query: &str, values: [&str; N]) -> Result<bool, Problem> {
        self.shop
            .query_row(query, rusqlite::params_from_iter(values), |row| row.get(0))
            .map_err(Problem::because("the outbox cannot be read"))
    }

    async fn until(&self, what: &str, holds: impl Fn() -> Result<bool, Problem>) -> Result<(), Problem> {
        let waiting = async {
            while !holds()? {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(done) => done,
            Err(_) => Err(Problem::new(format!("in vain waited until {what}"))
                .with_help(format!("the last that was logged:\n{}", self.stage.end_of_relay_log()))),
        }
    }
}
