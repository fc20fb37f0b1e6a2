//! Where the database file is.

use std::path::{Path, PathBuf};

use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};

/// The file that a database URL names: `sqlite:shop.db`, `sqlite://shop.db`, `sqlite:/var/lib/shop.db` or
/// `sqlite:///var/lib/shop.db`. Everything after the scheme is the path as it is, without escapes.
///
/// # Errors
/// When the scheme is another one, the path is empty or has parameters, or the database would only be in memory (each
/// connection would then have one of its own).
pub fn parse_url(url: &str) -> StoreResult<PathBuf> {
    let rest = url.strip_prefix("sqlite:").ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::Input,
            "the database URL of a SQLite file begins with \"sqlite:\", for example sqlite:shop.db",
        )
    })?;
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if let Some((file, _)) = path.split_once('?') {
        return Err(StoreError::new(
            StoreErrorKind::Input,
            format!(
                "a SQLite URL has no parameters: write sqlite:{file}, without what follows the question mark"
            ),
        ));
    }
    refuse_nameless(Path::new(path))?;
    Ok(PathBuf::from(path))
}

/// Fails for paths that SQLite takes for a private database of one connection.
pub(crate) fn refuse_nameless(path: &Path) -> StoreResult<()> {
    if path.as_os_str().is_empty() {
        return Err(StoreError::new(
            StoreErrorKind::Input,
            "the database URL names no file: write for example sqlite:shop.db",
        ));
    }
    if path == Path::new(":memory:") {
        return Err(StoreError::new(
            StoreErrorKind::Input,
            "a SQLite database in memory belongs to one connection and cannot be shared with the relay: name a file",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_form_names_its_file() {
        for (url, path) in [
            ("sqlite:shop.db", "shop.db"),
            ("sqlite://shop.db", "shop.db"),
            ("sqlite:data/shop.db", "data/shop.db"),
            ("sqlite:/var/lib/shop.db", "/var/lib/shop.db"),
            ("sqlite:///var/lib/shop.db", "/var/lib/shop.db"),
        ] {
            assert_eq!(parse_url(url).unwrap(), Path::new(path), "{url}");
        }
    }

    #[test]
    fn what_names_no_file_is_refused_with_a_way_out() {
        for (url, hint) in [
            ("postgres://db/shop", "sqlite:shop.db"),
            ("sqlite:", "sqlite:shop.db"),
            ("sqlite://", "sqlite:shop.db"),
            ("sqlite::memory:", "name a file"),
            ("sqlite://shop.db?mode=rwc", "write sqlite:shop.db"),
        ] {
            let error = parse_url(url).unwrap_err();
            assert_eq!(error.kind, StoreErrorKind::Input, "{url}");
            assert!(error.message.contains(hint), "{url}: {}", error.message);
        }
    }
}
