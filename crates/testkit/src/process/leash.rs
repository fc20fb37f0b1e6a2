//! Ends a child when the process that started it ends, however that happens.
//!
//! A shell waits on a pipe of which the parent alone holds the other end, as for clusters (`postgres/watchdog.rs`). The
//! kernel closes that end on return, on panic and on SIGKILL alike, and the shell then kills the child, also one that
//! is stopped. A parent that has buried its child says so first, so that nothing is killed that took over its id.
//!
//! The kernel could do without the shell (`PR_SET_PDEATHSIG`), but only the child can ask it for that, between fork
//! and exec, which takes `unsafe`; and it acts when the *thread* ends that started the child.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// `$1`: the child.
const SCRIPT: &str = r#"read -r _ || kill -KILL "$1""#;

/// The waiting shell of one child. Dropping it without [`Self::release`] kills the child.
#[derive(Debug)]
pub(super) struct Leash {
    shell: Child,
}

impl Leash {
    /// For the child `pid`. In a process group of its own, so that a Ctrl-C that ends the parent does not reach it.
    pub(super) fn tie(pid: u32) -> Self {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "postbox-testkit-leash", &pid.to_string()])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("/bin/sh can be started");
        Self { shell }
    }

    /// The child is dead and buried.
    pub(super) fn release(mut self) {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // Nothing to do about a failure: then the shell is gone already.
            let _ = pipe.write_all(b"\n");
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
