//! Who is believed when a receiver shows its certificate, and what is shown to a receiver that asks for one.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::config::{ClientIdentity, ConfigError};

/// A connector that trusts the system's authorities and those in `ca_file`, and shows `identity` when asked for one.
///
/// The provider is passed explicitly: a process-wide default may be installed only once, and that is not a library's
/// to do.
pub(super) fn connector(
    ca_file: Option<&Path>,
    identity: Option<&ClientIdentity>,
) -> Result<TlsConnector, ConfigError> {
    // Shared by all destinations without files of their own: there may be thousands, and each would hold the system's
    // authorities again.
    static PLAIN: OnceLock<TlsConnector> = OnceLock::new();
    if ca_file.is_some() || identity.is_some() {
        return build(ca_file, identity);
    }
    if let Some(connector) = PLAIN.get() {
        return Ok(connector.clone());
    }
    let built = build(None, None)?;
    Ok(PLAIN.get_or_init(|| built).clone())
}

fn build(ca_file: Option<&Path>, identity: Option<&ClientIdentity>) -> Result<TlsConnector, ConfigError> {
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
    Ok(TlsConnector::from(Arc::new(config)))
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
}
