//! A shop with an outbox, a consumer with an inbox, each in a database of its own, and the command in between.

use std::path::Path;
use std::process::{Command, Stdio};

use postbox_testkit::postgres::{Database, PgCluster};
use tempfile::TempDir;

use crate::languages::folder;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(crate) struct Stage {
    shop: Database<'static>,
    billing: Database<'static>,
    shop_url: String,
    billing_url: String,
    directory: TempDir,
}

impl Stage {
    /// As `examples/README.md` says.
    pub(crate) fn set() -> Self {
        let (shop, billing) = (PgCluster::shared().database(), PgCluster::shared().database());
        let (shop_url, billing_url) = (shop.url(), billing.url());
        let stage = Self { shop, billing, shop_url, billing_url, directory: tempfile::tempdir().unwrap() };
        stage.postbox(&["migrate", "--database-url", &stage.shop_url], 0);
        stage.postbox(&["migrate", "--inbox", "--database-url", &stage.billing_url], 0);
        stage.psql_file(&stage.shop_url, "shop.sql", &[]);
        stage.psql_file(&stage.billing_url, "billing.sql", &[]);
        stage
    }

    pub(crate) fn shop_url(&self) -> &str {
        &self.shop_url
    }

    pub(crate) fn billing_url(&self) -> &str {
        &self.billing_url
    }

    /// A directory that goes with the stage.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn invoices(&self) -> String {
        self.billing.sql("SELECT order_id, total FROM invoice ORDER BY order_id")
    }

    /// Leaves nothing of earlier tests to be delivered.
    pub(crate) fn forget_events(&self) {
        self.shop.sql("DELETE FROM outbox_pending; DELETE FROM outbox");
    }

    /// Runs a file of `examples/sql`; what it prints, without headings and tags.
    #[track_caller]
    pub(crate) fn psql_file(&self, url: &str, file: &str, variables: &[(&str, &str)]) -> String {
        let mut command = Command::new("psql");
        command.args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--dbname",
            url,
            "--file",
            file,
        ]);
        for (name, value) in variables {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        let output = command.current_dir(folder("sql")).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Delivers what the shop has written to a consumer at `url`, then everything once more: the invoices are those,
    /// and both sides' books agree.
    pub(crate) fn delivers_once(&self, url: &str, invoices: &str) {
        let configuration = format!(
            "[database]\nurl = \"{}\"\n[[destination]]\nname = \"billing\"\nkind = \"webhook\"\nurl = \"{url}/\"\n\
             secret = {{ file = \"secret\" }}\nretry = {{ attempts = 2, delays = [\"0s\"] }}\n",
            self.shop_url
        );
        std::fs::write(self.directory.path().join("postbox.toml"), configuration).unwrap();
        std::fs::write(self.directory.path().join("secret"), SECRET).unwrap();
        self.postbox(&["relay", "--once"], 0);
        assert_eq!(self.invoices(), invoices);
        self.postbox(&["replay", "--all", "--yes"], 0);
        self.postbox(&["relay", "--once"], 0);
        assert_eq!(self.invoices(), invoices, "a repetition had an effect");
        self.postbox(&["reconcile", "--inbox-url", &self.billing_url], 0);
    }

    #[track_caller]
    fn postbox(&self, arguments: &[&str], code: i32) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postbox"));
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        let output =
            command.env_remove("POSTBOX_DATABASE_URL").env_remove("POSTBOX_INBOX_URL").output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
