//! Files of PEM, and the configuration that they make.

use std::path::Path;
use std::sync::Arc;

use model::Nanos;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    ClientHello, NoClientAuth, ParsedCertificate, ResolvesServerCert, ServerSessionMemoryCache,
    WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{Error, RootCertStore, ServerConfig};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::settings::{ClientCertificates, Identity, TlsError, TlsSettings};
use crate::config::Protocol;

/// The configurations of all protocols, made of one state of the files. They differ in the name
/// that a client may demand (ALPN): one that demands another protocol is refused in the handshake,
/// so that no web page reaches Redis's listener by TLS.
#[derive(Clone, Debug)]
pub(crate) struct TlsConfigs {
    by_protocol: [Arc<ServerConfig>; Protocol::ALL.len()],
    /// When the first of the server's certificates ends.
    ends_at: Option<Nanos>,
}

impl TlsConfigs {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`]: the first file that cannot be used.
    pub(crate) fn load(settings: &TlsSettings) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let keys: Result<Vec<_>, _> =
            settings.identities.iter().map(|it| identity(it, &provider)).collect();
        let resolver = Arc::new(ByName { keys: keys? });
        let ends = resolver.keys.iter().filter_map(|key| ends_at(key));
        let ends_at = ends.min();
        let verifier = match &settings.clients {
            Some(clients) => verifier(clients, &provider)?,
            None => Arc::new(NoClientAuth),
        };
        let failed = |error: Error| TlsError { file: None, cause: error.to_string() };
        let usual = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(resolver);
        let ticketer = ring::Ticketer::new().map_err(failed)?;
        let by_protocol = Protocol::ALL.map(|protocol| {
            let mut config = usual.clone();
            config.alpn_protocols = alpn(protocol);
            // Both are good for the certificates and roots of these files only.
            config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
            config.ticketer = Arc::clone(&ticketer);
            Arc::new(config)
        });
        Ok(Self { by_protocol, ends_at })
    }

    /// The configuration for a protocol.
    pub(crate) fn of(&self, protocol: Protocol) -> &Arc<ServerConfig> {
        let [amqp, beanstalkd, redis, http] = &self.by_protocol;
        match protocol {
            Protocol::Amqp => amqp,
            Protocol::Beanstalkd => beanstalkd,
            Protocol::Redis => redis,
            Protocol::Http => http,
        }
    }

    /// When the first of the server's certificates ends.
    pub(crate) const fn ends_at(&self) -> Option<Nanos> {
        self.ends_at
    }
}

/// The names of a protocol that a client may demand, best first.
fn alpn(protocol: Protocol) -> Vec<Vec<u8>> {
    let names: &[&str] = match protocol {
        Protocol::Http => &["h2", "http/1.1"],
        Protocol::Amqp => &["amqp"],
        Protocol::Redis => &["redis"],
        Protocol::Beanstalkd => &["beanstalkd"],
    };
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

/// Chooses the certificate for the name that a client asks for.
#[derive(Debug)]
struct ByName {
    keys: Vec<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let named = name.and_then(|name| self.keys.iter().find(|key| is_for(key, &name)));
        named.or_else(|| self.keys.first()).cloned()
    }
}

fn is_for(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let parsed = key.cert.first().map(ParsedCertificate::try_from);
    parsed.and_then(Result::ok).is_some_and(|it| verify_server_name(&it, name).is_ok())
}

fn ends_at(key: &CertifiedKey) -> Option<Nanos> {
    let certificate = Certificate::from_der(key.cert.first()?).ok()?;
    let end = certificate.tbs_certificate.validity.not_after.to_unix_duration();
    Some(Nanos::from_secs(end.as_secs()))
}

fn identity(
    identity: &Identity,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<CertifiedKey>, TlsError> {
    let Identity { certificates: file, key } = identity;
    let chain = certificates(file)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        PemError::NoItemsFound => TlsError::new(
            key,
            "there is no private key in it: it must have a block BEGIN PRIVATE KEY, without a \
             password",
        ),
        error => unreadable(key, &error),
    })?;
    let made = CertifiedKey::from_der(chain, private, provider).map_err(|error| match error {
        Error::InconsistentKeys(_) => TlsError::new(
            key,
            format!("the key does not belong to the first certificate of {}", file.display()),
        ),
        error => TlsError::new(key, format!("the key cannot be used: {error}")),
    })?;
    Ok(Arc::new(made))
}

fn verifier(
    clients: &ClientCertificates,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let ClientCertificates { roots: file, revoked, required } = clients;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::new(file, format!("a root cannot be used: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(provider));
    let builder = match revoked {
        Some(file) => builder.with_crls(lists(file)?),
        None => builder,
    };
    let builder = if *required { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|error| {
        TlsError::new(revoked.as_ref().unwrap_or(file), format!("it cannot be used: {error}"))
    })
}

/// The certificates of a file: at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(file, &error))?;
    let all: Result<Vec<_>, _> = read.collect();
    let all = all.map_err(|error| unreadable(file, &error))?;
    let none = "there is no certificate in it: it must have blocks BEGIN CERTIFICATE";
    if all.is_empty() { Err(TlsError::new(file, none)) } else { Ok(all) }
}

fn lists(file: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let read = CertificateRevocationListDer::pem_file_iter(file);
    let all: Result<Vec<_>, _> = read.map_err(|error| unreadable(file, &error))?.collect();
    let all = all.map_err(|error| unreadable(file, &error))?;
    let none =
        "there is no list of revoked certificates in it: it must have a block BEGIN X509 CRL";
    if all.is_empty() { Err(TlsError::new(file, none)) } else { Ok(all) }
}

fn unreadable(file: &Path, error: &PemError) -> TlsError {
    match error {
        PemError::Io(error) => TlsError::new(file, error.to_string()),
        error => TlsError::new(file, format!("it is no PEM: {error}")),
    }
}

/// Sessions by TLS 1.2 without tickets that a client may take up again, for each protocol.
const SESSIONS_MAX: usize = 1_024;
