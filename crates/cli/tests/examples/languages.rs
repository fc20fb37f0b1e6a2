//! Starting programs of other languages with the packages that `scripts/test.sh` installed for them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use postbox_testkit::process::Process;

use crate::stage::{SECRET, Stage};

/// The folder of an example.
pub(crate) fn folder(language: &str) -> PathBuf {
    workspace().join("examples").join(language)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A script of `examples/python`.
pub(crate) fn python(script: &str) -> Command {
    let mut command = Command::new(postbox_testkit::python::interpreter());
    // No __pycache__ among the sources.
    command.args(["-B", script]).current_dir(folder("python"));
    command
}

/// `node` with a script of `examples/node`. Modules are looked for beside the script, so it runs as a copy that has them
/// there.
pub(crate) fn node(stage: &Stage, arguments: &[&str]) -> Command {
    let packages = workspace().join("target/node/node_modules");
    assert!(
        packages.join("pg").exists(),
        "the packages of examples/node are missing: run scripts/test.sh once, which makes target/node"
    );
    let copy = stage.directory().join("node");
    if !copy.exists() {
        std::fs::create_dir(&copy).unwrap();
        std::os::unix::fs::symlink(packages, copy.join("node_modules")).unwrap();
        for entry in std::fs::read_dir(folder("node")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "mjs") {
                std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    let mut command = Command::new("node");
    command.args(arguments).current_dir(copy);
    command
}

/// Runs a program of the producer's side to its good end.
#[track_caller]
pub(crate) fn succeeds(command: &mut Command, stage: &Stage) {
    let output = command.env("DATABASE_URL", stage.shop_url()).stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A consumer that listens.
pub(crate) struct Consumer {
    _process: Process,
    url: String,
}

impl Consumer {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Starts a program of the consumer's side and waits until it listens.
pub(crate) fn consumer(mut command: Command, stage: &Stage) -> Consumer {
    command
        .env("DATABASE_URL", stage.billing_url())
        .env("WEBHOOK_SECRET", SECRET)
        .env_remove("PORT")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut process = Process::spawn(command);
    let url = process.told("listening on ");
    Consumer { _process: process, url }
}
