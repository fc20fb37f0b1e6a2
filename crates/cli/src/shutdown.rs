//! Signals: the first one asks for a graceful end, the second one ends at once.

use std::io;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;

/// Time in which a repeated signal counts as the same one.
const ONE_SIGNAL: Duration = Duration::from_millis(200);

/// Listens for SIGTERM and SIGINT (Ctrl-C elsewhere) from now on; the token is cancelled by the first.
///
/// # Errors
/// When the system refuses to register a handler.
pub(crate) fn on_signals() -> io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let asked = token.clone();
    let mut signals = Signals::register()?;
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping: attempts in flight are given time to end; a second signal stops at once");
        asked.cancel();
        // What sends a signal to a process and to its group (timeout(1), a terminal) means one.
        let one_signal = tokio::time::sleep(ONE_SIGNAL);
        tokio::pin!(one_signal);
        while tokio::select! { () = &mut one_signal => false, () = signals.next() => true } {}
        signals.next().await;
        tracing::warn!("stopped at once: what was in flight will be sent again");
        std::process::exit(Exit::Interrupted as i32);
    });
    Ok(token)
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn register() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "registering can fail on other systems")]
    fn register() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
