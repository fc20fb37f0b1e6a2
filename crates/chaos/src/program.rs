//! The `postbox` program that is tried: the one beside this program, built when it is missing or older than its source.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// Crates that the command is made of.
const PARTS: [&str; 6] = ["cli", "core", "postgres", "relay", "sinks", "sqlite"];

/// Where it is.
///
/// # Panics
/// When it cannot be built.
pub(crate) fn postbox() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(find)
}

fn find() -> PathBuf {
    let own = std::env::current_exe().expect("a program can find itself");
    let folder = own.parent().expect("it is in a folder");
    // Test programs are one folder deeper.
    let folder = if folder.ends_with("deps") { folder.parent().expect("of a target") } else { folder };
    let program = folder.join(format!("postbox{}", std::env::consts::EXE_SUFFIX));
    if written(&program) < newest_source() {
        build(folder.ends_with("release"));
    }
    program
}

fn build(release: bool) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "-p", "postbox-cli"]).current_dir(workspace());
    if release {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "cargo build -p postbox-cli failed");
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn written(path: &Path) -> SystemTime {
    path.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn newest_source() -> SystemTime {
    let sources = PARTS.iter().map(|part| newest_below(&workspace().join("crates").join(part).join("src")));
    sources.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

fn newest_below(folder: &Path) -> SystemTime {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let times = entries.map(|entry| {
        let path = entry.path();
        if path.is_dir() { newest_below(&path) } else { written(&path) }
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}
