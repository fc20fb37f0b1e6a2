//! What the program started ends with it, however it ends.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is the failing assertion, in the functions beside the tests too"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use postbox_testkit::process::{Process, eventually};

/// Relays that it runs.
const RELAYS: usize = 3;

/// The program at work.
struct Program {
    process: Process,
    relays: Vec<u32>,
    /// Where its PostgreSQL lives; removed once that has stopped.
    cluster: PathBuf,
}

impl Program {
    /// Starts it and waits until its relays run.
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postbox-chaos"));
        command.args(["--minutes", "10"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command);
        let is_relay = |child: &(u32, Vec<String>)| child.1.get(1).is_some_and(|word| word == "relay");
        eventually("its relays run", || {
            children(process.id()).iter().filter(|child| is_relay(child)).count() == RELAYS
        });
        let children = children(process.id());
        let relays = children.iter().filter(|child| is_relay(child)).map(|child| child.0).collect();
        let is_watchdog = |word: &String| word == "postbox-testkit-watchdog";
        let watchdog = children.iter().find(|(_, words)| words.iter().any(is_watchdog)).unwrap();
        let cluster = PathBuf::from(watchdog.1.last().unwrap());
        assert!(cluster.join("data/postmaster.pid").exists(), "its server runs");
        Self { process, relays, cluster }
    }

    fn left_nothing_running(&self) -> bool {
        !self.relays.iter().any(|&relay| is_running(relay)) && !self.cluster.exists()
    }
}

/// Processes that `parent` started, and their command lines.
fn children(parent: u32) -> Vec<(u32, Vec<String>)> {
    let processes = Path::new("/proc").read_dir().unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let of_parent = pids.filter(|&pid| stat(pid).is_some_and(|stat| stat.1 == parent));
    let command_line = |pid| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, words.split_terminator('\0').map(str::to_owned).collect())
    };
    of_parent.map(command_line).collect()
}

/// State and parent of a process: the first fields behind its name in parentheses, by proc(5).
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(") ").next()?.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// A zombie has ended; who buries it is not ours to say.
fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z")
}

#[test]
fn a_kill_of_the_program_ends_its_relays_and_its_database() {
    let mut program = Program::start();
    // Also one that could not end by itself.
    kill_stop(program.relays[0]);
    program.process.kill();
    eventually("nothing is left of it", || program.left_nothing_running());
}

#[test]
fn ctrl_c_ends_the_program_in_order_when_everything_it_started_has_ended() {
    let mut program = Program::start();
    program.process.interrupt();
    assert_eq!(program.process.ended().code(), Some(130));
    assert!(program.left_nothing_running());
}

fn kill_stop(pid: u32) {
    let done = Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap();
    assert!(done.success());
}
