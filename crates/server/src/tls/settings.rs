//! The settings of TLS, and the errors of its files.

use std::fmt;
use std::path::{Path, PathBuf};

/// The files of TLS, for all listeners that speak it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The server's certificates. A client gets the first that is good for the name it asks for,
    /// else the first of all.
    pub identities: Vec<Identity>,
    /// Certificates of clients; `None`: clients are not asked for any.
    pub clients: Option<ClientCertificates>,
}

/// A certificate of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// PEM: the certificate, and behind it those that lead to a root.
    pub certificates: PathBuf,
    /// PEM: its private key.
    pub key: PathBuf,
}

/// Which certificates of clients are good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// PEM: the roots that sign them.
    pub roots: PathBuf,
    /// PEM: lists of revoked ones.
    pub revoked: Option<PathBuf>,
    /// A client without a certificate is refused.
    pub required: bool,
}

/// A file of TLS that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// The file; `None`: several together.
    pub file: Option<PathBuf>,
    /// The cause, and what mends it.
    pub cause: String,
}

impl TlsSettings {
    /// All files, each of which may change.
    pub(crate) fn files(&self) -> Vec<&PathBuf> {
        let own = self.identities.iter().flat_map(|it| [&it.certificates, &it.key]);
        let clients = self.clients.iter();
        own.chain(clients.flat_map(|it| [&it.roots].into_iter().chain(&it.revoked))).collect()
    }
}

impl TlsError {
    pub(super) fn new(file: &Path, cause: impl Into<String>) -> Self {
        Self { file: Some(file.to_owned()), cause: cause.into() }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}: {}", file.display(), self.cause),
            None => f.write_str(&self.cause),
        }
    }
}

impl std::error::Error for TlsError {}
