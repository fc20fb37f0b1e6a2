//! A certificate of our own, so that receivers can speak TLS.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// The server's half, and the certificate that a client has to trust.
pub(super) struct Identity {
    pub(super) acceptor: TlsAcceptor,
    // Kept for its folder, which is removed with it.
    _folder: tempfile::TempDir,
    pub(super) ca_file: PathBuf,
}

impl Identity {
    /// A fresh self-signed certificate for `localhost` and `127.0.0.1`.
    pub(super) fn new() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certified = rcgen::generate_simple_self_signed(names).expect("the names are valid");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports the default protocol versions")
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .expect("certificate and key belong together");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let ca_file = folder.path().join("ca.pem");
        std::fs::write(&ca_file, certified.cert.pem()).expect("the certificate can be written");
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), _folder: folder, ca_file }
    }
}
