//! Who is believed when a receiver shows its certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::config::ConfigError;

/// A connector that trusts the system's authorities and those in `ca_file`.
///
/// The provider is passed explicitly: a process-wide default may be installed only once, and that is not a library's
/// to do.
pub(super) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, ConfigError> {
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
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), ConfigError> {
    let wrong = |problem: String| ConfigError::new("ca_file", format!("{} {problem}", path.display()));
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(format!("cannot be read as PEM: {error}")))?;
    if certificates.is_empty() {
        return Err(wrong("holds no certificate".to_owned()));
    }
    for certificate in certificates {
        roots
            .add(certificate)
            .map_err(|error| wrong(format!("holds a certificate that cannot be used: {error}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_with_its_name() {
        for (path, hint) in [("/nonexistent/ca.pem", "cannot be read"), (file!(), "holds no certificate")] {
            // `file!` counts from the workspace's root.
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
            let error = connector(Some(&path)).err().unwrap();
            assert_eq!(error.key, "ca_file");
            assert!(error.problem.contains(hint), "{error}");
        }
    }
}
