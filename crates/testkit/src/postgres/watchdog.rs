//! Ends a cluster when the process that made it ends, however that happens.
//!
//! A shell waits on a pipe of which the test process alone holds the other end. The kernel closes that end on return,
//! on panic and on SIGKILL alike; the shell then stops the server and removes its folder. It is started before anything
//! else is, and in a process group of its own, so that a Ctrl-C or a runner's kill of the group does not reach it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::binaries::Account;

/// `$1`: pg_ctl, `$2`: the cluster's folder.
const SCRIPT: &str = r#"
read -r _
if [ -e "$2/data/postmaster.pid" ]; then
    "$1" -D "$2/data" -m immediate -w -t 20 stop
fi
rm -rf "$2"
"#;

/// The waiting shell; dropping it ends the cluster and waits until that is done.
#[derive(Debug)]
pub(super) struct Watchdog {
    shell: Child,
}

impl Watchdog {
    pub(super) fn start(pg_ctl: &Path, folder: &Path, account: Option<Account>) -> Self {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, "postbox-testkit-watchdog"])
            .args([pg_ctl, folder])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if let Some(Account { uid, gid }) = account {
            command.uid(uid).gid(gid);
        }
        Self { shell: command.spawn().expect("/bin/sh can be started") }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // Nothing to do about a failure here: the shell goes its way without us.
        let _ = self.shell.wait();
    }
}
