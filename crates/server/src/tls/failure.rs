//! Connections that end in the handshake: the log says why, so that an operator can mend it.

use std::fmt;

use rustls::{AlertDescription, CertificateError, Error};

/// The log line about a connection without TLS.
#[derive(Debug)]
pub(crate) struct FailedHandshake<'a> {
    /// Its connection, as operators know it.
    pub(crate) connection: &'a str,
    pub(crate) error: &'a Error,
}

impl fmt::Display for FailedHandshake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connection, error } = self;
        write!(f, "closed {connection}: {error}")?;
        f.write_str(match error {
            Error::InvalidMessage(_) => ", does its client use TLS?",
            Error::AlertReceived(
                AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown,
            ) => ", its client does not trust this server's certificate: give it the root",
            Error::AlertReceived(AlertDescription::CertificateExpired) => {
                ", this server's certificate has ended: renew it (--tls-cert)"
            }
            Error::NoCertificatesPresented => {
                ", give its client a certificate, or do not require one (--tls-clients)"
            }
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                ", its certificate is signed by no root of --tls-client-ca"
            }
            _ => "",
        })
    }
}
