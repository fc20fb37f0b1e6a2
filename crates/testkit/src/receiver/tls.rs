//! A certificate of our own, so that receivers can speak TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// The server's half, and the files that a client needs.
pub(super) struct Identity {
    pub(super) acceptor: TlsAcceptor,
    // Kept for its folder, which is removed with it.
    _folder: tempfile::TempDir,
    pub(super) ca_file: PathBuf,
    pub(super) client: Option<ClientFiles>,
}

/// What a client shows to a server that asks for a certificate.
#[derive(Debug, Clone)]
pub struct ClientFiles {
    /// PEM file with the certificate.
    pub certificate: PathBuf,
    /// PEM file with its key.
    pub key: PathBuf,
}

impl Identity {
    /// A fresh self-signed certificate for `localhost` and `127.0.0.1`.
    pub(super) fn new() -> Self {
        Self::make(false)
    }

    /// The same, and a certificate without which no client is talked to.
    pub(super) fn mutual() -> Self {
        Self::make(true)
    }

    fn make(mutual: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring supports the default protocol versions");
        let (builder, client) = if mutual {
            let (files, verifier) = client(folder.path());
            (builder.with_client_cert_verifier(verifier), Some(files))
        } else {
            (builder.with_no_client_auth(), None)
        };
        let certified = certified(&["localhost", "127.0.0.1"]);
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let config = builder
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .expect("certificate and key belong together");
        let ca_file = folder.path().join("ca.pem");
        std::fs::write(&ca_file, certified.cert.pem()).expect("the certificate can be written");
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), _folder: folder, ca_file, client }
    }
}

/// A client's certificate in `folder`, and a server's rule to take no other.
fn client(folder: &Path) -> (ClientFiles, Arc<dyn ClientCertVerifier>) {
    let certified = certified(&["postbox"]);
    let files = ClientFiles { certificate: folder.join("client.pem"), key: folder.join("client.key") };
    std::fs::write(&files.certificate, certified.cert.pem()).expect("the certificate can be written");
    std::fs::write(&files.key, certified.signing_key.serialize_pem()).expect("the key can be written");
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).expect("the certificate is one");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .expect("one root is enough");
    (files, verifier)
}

fn certified(names: &[&str]) -> CertifiedKey<KeyPair> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    rcgen::generate_simple_self_signed(names).expect("the names are valid")
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
