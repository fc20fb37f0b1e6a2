//! Who is believed when a receiver shows its certificate, and what is shown to a receiver that asks for one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::config::{ClientIdentity, ConfigError};

/// A connector that trusts the system's authorities and those in `ca_file`, and shows `identity` when asked for one.
///
/// Destinations with the same files share one: there may be thousands, and each would read and hold the system's
/// authorities again. A file that has changed since is read anew.
pub(super) fn connector(
    ca_file: Option<&Path>,
    identity: Option<&ClientIdentity>,
) -> Result<TlsConnector, ConfigError> {
    static SHARED: LazyLock<Mutex<HashMap<Files, Weak<ClientConfig>>>> = LazyLock::new(Mutex::default);
    // Most destinations name no files, and a check of the configuration should not read the authorities for each.
    static PLAIN: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    let files = Files::of(ca_file, identity);
    let known = SHARED.lock().unwrap_or_else(PoisonError::into_inner).get(&files).and_then(Weak::upgrade);
    if let Some(known) = known {
        return Ok(TlsConnector::from(known));
    }
    let mut built = Arc::new(build(ca_file, identity)?);
    if files == Files::default() {
        built = Arc::clone(PLAIN.get_or_init(|| built));
    }
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.retain(|_, config| config.strong_count() > 0);
    shared.insert(files, Arc::downgrade(&built));
    Ok(TlsConnector::from(built))
}

/// What a connector is made of besides the system's authorities.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct Files {
    ca_file: Option<FileState>,
    certificate: Option<FileState>,
    key: Option<FileState>,
}

/// A file as it was: another state is taken for another content.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FileState {
    path: PathBuf,
    bytes: u64,
    /// `None` where the file or the system does not tell.
    modified: Option<SystemTime>,
}

impl Files {
    fn of(ca_file: Option<&Path>, identity: Option<&ClientIdentity>) -> Self {
        Self {
            ca_file: ca_file.map(FileState::of),
            certificate: identity.map(|identity| FileState::of(&identity.certificate)),
            key: identity.map(|identity| FileState::of(&identity.key)),
        }
    }
}

impl FileState {
    fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Self {
            path: path.to_owned(),
            bytes: metadata.as_ref().map_or(0, std::fs::Metadata::len),
            modified: metadata.and_then(|metadata| metadata.modified().ok()),
        }
    }
}

/// The provider is passed explicitly: a process-wide default may be installed only once, and that is not a library's
/// to do.
fn build(ca_file: Option<&Path>, identity: Option<&ClientIdentity>) -> Result<ClientConfig, ConfigError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = ca_file {
        add_file(&mut roots, path)?;
    }
    if roots.is_empty() {
        return Err(ConfigError::new(
            "url",
            "is https, and this machine has no certificates to check receivers with: apt-get install \
             ca-certificates, or name a file in `ca_file`",
        ));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = read_identity(identity)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                let file = identity.certificate.display();
                ConfigError::new(
                    "client_certificate",
                    format!("{file} cannot be used with the key in `client_key`: {error}"),
                )
            })?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn read_identity(
    identity: &ClientIdentity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ConfigError> {
    let chain = certificates(&identity.certificate, "client_certificate")?;
    let key = PrivateKeyDer::from_pem_file(&identity.key).map_err(|error| {
        let file = identity.key.display();
        ConfigError::new("client_key", format!("{file} cannot be read as a private key in PEM: {error}"))
    })?;
    Ok((chain, key))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), ConfigError> {
    for certificate in certificates(path, "ca_file")? {
        roots.add(certificate).map_err(|error| {
            let file = path.display();
            ConfigError::new("ca_file", format!("{file} holds a certificate that cannot be used: {error}"))
        })?;
    }
    Ok(())
}

/// The certificates of a PEM file, at least one.
fn certificates(path: &Path, key: &'static str) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let wrong = |problem: String| ConfigError::new(key, format!("{} {problem}", path.display()));
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(format!("cannot be read as PEM: {error}")))?;
    if certificates.is_empty() {
        return Err(wrong("holds no certificate".to_owned()));
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use postbox_testkit::receiver::{Answer, Receiver, Script};

    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_with_its_name() {
        for (path, hint) in [("/nonexistent/ca.pem", "cannot be read"), (file!(), "holds no certificate")] {
            // `file!` counts from the workspace's root.
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
            let error = connector(Some(&path), None).err().unwrap();
            assert_eq!(error.key, "ca_file");
            assert!(error.problem.contains(hint), "{error}");
        }
    }

    #[test]
    fn an_identity_that_cannot_be_used_is_refused_with_the_key_that_is_wrong() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let missing = ClientIdentity { certificate: folder.join("none.pem"), key: folder.join("none.key") };
        assert_eq!(connector(None, Some(&missing)).err().unwrap().key, "client_certificate");
    }

    #[tokio::test]
    async fn destinations_with_the_same_files_share_a_connector_until_a_file_changes() {
        let receiver = Receiver::start_tls(Script::always(Answer::Ok)).await;
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("ca.pem");
        let pem = std::fs::read_to_string(receiver.ca_file().unwrap()).unwrap();
        std::fs::write(&ca_file, &pem).unwrap();
        let config = || connector(Some(&ca_file), None).unwrap();
        let (one, other) = (config(), config());
        assert!(Arc::ptr_eq(one.config(), other.config()));
        std::fs::write(&ca_file, format!("# renewed\n{pem}")).unwrap();
        assert!(!Arc::ptr_eq(one.config(), config().config()));
    }
}
