//! Processes that the tests start are this very test program again, told by a variable which part to play.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use postbox_testkit::faults::Dice;
use postbox_testkit::process::Process;
use postbox_testkit::receiver::{Answer, Receiver, RecordFile, Recording, Script};
use tokio::io::AsyncReadExt as _;

use crate::producer::{self, Producing};

const ROLE: &str = "POSTBOX_CRASH_ROLE";

/// Time the receiver takes to answer: enough for attempts of one lane to overlap, if they ever did.
const WORK: Duration = Duration::from_millis(10);

/// A part to play.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Role {
    /// Writes events until it has committed its share.
    Producer(Producing),
    /// Records what it gets, answers 503 to 5 % and loses the answer to 1 % of the requests.
    Receiver { record: PathBuf, seed: u64 },
}

impl Role {
    /// Starts the part as a process of its own.
    pub(crate) fn start(&self) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "role::a_process_with_a_part_to_play", "--nocapture"])
            .env(ROLE, serde_json::to_string(self).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Process::spawn(command)
    }
}

/// Not a test of its own: the processes that the tests start.
#[test]
fn a_process_with_a_part_to_play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match serde_json::from_str(&role).unwrap() {
        Role::Producer(producing) => runtime.block_on(producer::produce(&producing)),
        Role::Receiver { record, seed } => {
            runtime.block_on(receive(RecordFile::append(&record).unwrap(), seed))
        }
    }
}

/// Tells its URL and receives until its standard input ends, as it does when the test does.
async fn receive(record: RecordFile, seed: u64) {
    let dice = std::sync::Mutex::new(Dice::new(seed));
    let script = Script::each(move |_| {
        let mut dice = dice.lock().unwrap();
        let answer = match dice.below(100) {
            0..5 => Answer::Status(503),
            5 => Answer::Lost,
            _ => Answer::Ok,
        };
        Answer::After(WORK, Box::new(answer))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let receiver = Receiver::on(listener, script, Recording::File(record));
    println!("\nreceiver {}", receiver.url());
    let mut ignored = [0; 64];
    while tokio::io::stdin().read(&mut ignored).await.unwrap() > 0 {}
}
