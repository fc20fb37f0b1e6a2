//! The webhook as a process of its own: this very program, started with `whatsapp-webhook`.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::demo::problem::Problem;
use crate::demo::stage::Stage;

/// A running webhook; it is killed when the value goes out of scope.
#[derive(Debug)]
pub(super) struct WebhookProcess {
    _child: Child,
    url: String,
}

impl WebhookProcess {
    /// Starts one on this stage, whose folder holds the files `verify-token` and `app-secret`.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) async fn start(stage: &Stage) -> Result<Self, Problem> {
        let broken = "the webhook cannot be started";
        let program = std::env::current_exe().map_err(Problem::because("this program cannot find itself"))?;
        let log = stage.open_log()?;
        let mut child = Command::new(program)
            .args(["whatsapp-webhook", "--listen", "127.0.0.1:0", "--verify-token", "file:verify-token"])
            .args(["--app-secret", "file:app-secret", "--follow-up", "read", "--config"])
            .arg(stage.configuration())
            .current_dir(stage.folder())
            .env_remove("POSTBOX_DATABASE_URL")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(Problem::because(broken))?;
        let out = child.stdout.take().ok_or_else(|| Problem::new(broken))?;
        let line = BufReader::new(out).lines().next_line().await.map_err(Problem::because(broken))?;
        let url = line.and_then(|line| line.strip_prefix("listening on ").map(str::to_owned));
        Ok(Self { _child: child, url: url.ok_or_else(|| Problem::new(broken))? })
    }

    /// The callback URL.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}
