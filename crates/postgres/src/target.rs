//! Which database to connect to, and how well the connection is protected.
//!
//! `sslmode` means what PostgreSQL's manual says (section 34.19, SSL Support): `disable`; `prefer`, the default, and
//! `require` encrypt and accept any certificate; `verify-full` checks certificate and host name. `verify-ca` is
//! treated as `verify-full`. Certificates are checked against `sslrootcert` (a PEM file) or the system's roots.

use std::sync::Arc;
use std::time::Duration;

use postbox_core::store::{StoreError, StoreErrorKind, StoreResult};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::{Config, Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

/// Longest time to establish one connection, unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which the kernel declares a peer dead that acknowledges nothing, unless the URL says otherwise.
const PEER_SILENCE: Duration = Duration::from_secs(15);

/// A database to connect to.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
    /// Host, port and database, for messages.
    pub(crate) place: Arc<str>,
}

impl Target {
    /// Understands `url`, a URL (`postgres://…`) or a list of `key=value` pairs.
    pub(crate) fn parse(url: &str) -> StoreResult<Self> {
        let (url, protection) = Protection::split_from(url)?;
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            StoreError::caused(StoreErrorKind::Input, "the database URL cannot be used", error)
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(PEER_SILENCE);
        }
        if config.get_application_name().is_none() {
            config.application_name("postbox");
        }
        config.keepalives_idle(PEER_SILENCE);
        if protection.verify {
            config.ssl_mode(SslMode::Require);
        }
        Ok(Self { place: place(&config).into(), tls: MakeRustlsConnect::new(protection.client()?), config })
    }
}

/// What `sslmode` and `sslrootcert` ask for beyond what the driver knows.
struct Protection {
    verify: bool,
    root_file: Option<String>,
}

impl Protection {
    /// Takes the parameters that the driver does not know out of `url`.
    fn split_from(url: &str) -> StoreResult<(String, Self)> {
        let mut protection = Self { verify: false, root_file: None };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Ok((url.to_owned(), protection));
        }
        let Some((base, query)) = url.split_once('?') else {
            return Ok((url.to_owned(), protection));
        };
        // Only the query is parsed as a URL: the driver accepts several hosts, which a URL parser does not.
        let query = Url::parse(&format!("postgres://host/?{query}")).map_err(|error| {
            StoreError::caused(StoreErrorKind::Input, "the database URL cannot be used", error)
        })?;
        let mut kept = url::form_urlencoded::Serializer::new(String::new());
        for (key, value) in query.query_pairs() {
            match (&*key, &*value) {
                ("sslmode", "verify-full" | "verify-ca") => protection.verify = true,
                ("sslrootcert", "system") => protection.verify = true,
                ("sslrootcert", file) => protection.root_file = Some(file.to_owned()),
                _ => {
                    kept.append_pair(&key, &value);
                }
            }
        }
        // The driver decodes percent signs and nothing else.
        Ok((format!("{base}?{}", kept.finish().replace('+', "%20")), protection))
    }

    fn client(&self) -> StoreResult<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::caused(StoreErrorKind::Internal, "TLS cannot be set up", error))?;
        Ok(if self.verify {
            builder.with_root_certificates(self.roots()?).with_no_client_auth()
        } else {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
                .with_no_client_auth()
        })
    }

    fn roots(&self) -> StoreResult<RootCertStore> {
        let mut roots = RootCertStore::empty();
        if let Some(file) = &self.root_file {
            let unreadable = |error| {
                StoreError::caused(StoreErrorKind::Input, format!("sslrootcert: cannot read {file}"), error)
            };
            for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
                roots.add(certificate.map_err(unreadable)?).map_err(|error| {
                    StoreError::caused(
                        StoreErrorKind::Input,
                        format!("sslrootcert: {file} is no root"),
                        error,
                    )
                })?;
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if roots.is_empty() {
            return Err(StoreError::new(
                StoreErrorKind::Input,
                "no root certificate to check the database's certificate against; name a file with sslrootcert=",
            ));
        }
        Ok(roots)
    }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(index, host)| {
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(folder) => format!("{}:{port}", folder.display()),
            }
        })
        .collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or("");
    format!("{}/{database}", hosts.join(","))
}

/// Accepts every certificate, as `sslmode=require` is defined: the connection is encrypted and its peer unknown.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_about_a_database_names_it_without_its_password() {
        let target = Target::parse("postgres://app:s3cret@db.example:6432/shop?sslmode=disable").unwrap();
        assert_eq!(&*target.place, "db.example:6432/shop");
        let error = Target::parse("postgres://app:s3cret@db.example/shop?nonsense=1").err().unwrap();
        assert_eq!(error.kind, StoreErrorKind::Input);
        assert!(!format!("{error:?}").contains("s3cret"));
    }

    #[test]
    fn verify_full_needs_an_encrypted_connection_and_a_root_it_can_read() {
        let error =
            Target::parse("postgres://db/shop?sslmode=verify-full&sslrootcert=/nowhere.pem").err().unwrap();
        assert!(error.message.contains("/nowhere.pem"), "{error}");
    }

    #[test]
    fn parameters_the_driver_knows_reach_it_unchanged() {
        let target =
            Target::parse("postgres://a@h1:1,h2:2/shop?application_name=my%20shop+1&connect_timeout=2")
                .unwrap();
        assert_eq!(target.config.get_application_name(), Some("my shop 1"));
        assert_eq!(target.config.get_connect_timeout(), Some(&Duration::from_secs(2)));
        assert_eq!(&*target.place, "h1:1,h2:2/shop");
    }
}
