//! The Python that tests run programs with: an environment of its own under `target`, which `scripts/test.sh` makes.

use std::path::{Path, PathBuf};

/// Names another interpreter, which then needs the packages of `examples/python/requirements.txt`.
const OVERRIDE: &str = "POSTBOX_TEST_PYTHON";

/// The interpreter.
///
/// # Panics
/// When there is none: with one line that says what to do.
#[must_use]
pub fn interpreter() -> PathBuf {
    if let Some(path) = std::env::var_os(OVERRIDE) {
        return path.into();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    assert!(
        path.exists(),
        "the tests' Python is missing: run scripts/test.sh once, which makes target/python, or set {OVERRIDE}"
    );
    path
}
