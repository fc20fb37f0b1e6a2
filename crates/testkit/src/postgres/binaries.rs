//! Where the server's programs are, and the user that may run them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory of PostgreSQL's programs to use instead of the one that is found.
const BINARIES_VARIABLE: &str = "POSTBOX_TEST_PG_BIN";

/// The directory that holds `initdb`, `pg_ctl` and `postgres` of one version.
///
/// # Panics
/// When there is none, with one line that says what to install.
pub(super) fn find() -> PathBuf {
    if let Some(given) = std::env::var_os(BINARIES_VARIABLE) {
        let given = PathBuf::from(given);
        assert!(
            is_complete(&given),
            "{BINARIES_VARIABLE} names {}, which lacks initdb, pg_ctl, postgres or psql",
            given.display()
        );
        return given;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // What PATH has may be links to single programs; their target's directory has them all. Debian keeps the server's
    // programs out of PATH, in a directory for each version.
    std::env::split_paths(&path)
        .filter_map(|directory| Some(directory.join("initdb").canonicalize().ok()?.parent()?.to_owned()))
        .chain(debian_directories())
        .find(|directory| is_complete(directory))
        .unwrap_or_else(|| {
            panic!("these tests need PostgreSQL's server (initdb, pg_ctl): apt-get install postgresql")
        })
}

fn is_complete(directory: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres", "psql"].iter().all(|program| directory.join(program).is_file())
}

/// `/usr/lib/postgresql/<version>/bin`, the highest version first.
fn debian_directories() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, directory)| directory).collect()
}

/// User and group to run the server as; PostgreSQL refuses to run as root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Account {
    /// `None` when this process may run the server itself, otherwise the account to change to.
    pub(super) fn needed() -> Option<Self> {
        if id(&["-u"])? != 0 {
            return None;
        }
        let account = ["postgres", "nobody"]
            .into_iter()
            .find_map(|user| Some(Self { uid: id(&["-u", user])?, gid: id(&["-g", user])? }));
        Some(account.expect("running as root, and there is no user postgres or nobody to run PostgreSQL as"))
    }
}

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
