//! The names of a certificate, as a users file writes them.

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, Utf8StringRef};
use x509_cert::der::{Decode as _, Tag, Tagged as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// `id-at-commonName` (RFC 5280, A.1).
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// All names of a certificate: `SAN:DNS:NAME`, `SAN:URI:URI`, `SAN:EMAIL:ADDRESS`, then `CN=NAME`.
/// None of one that cannot be read.
pub(crate) fn names(certificate: &CertificateDer<'_>) -> Vec<Box<str>> {
    let Ok(certificate) = Certificate::from_der(certificate) else { return Vec::new() };
    let certificate = certificate.tbs_certificate;
    let mut names = Vec::new();
    if let Ok(Some((_, SubjectAltName(alternatives)))) = certificate.get::<SubjectAltName>() {
        names.extend(alternatives.iter().filter_map(alternative));
    }
    let subject = certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let common = subject.filter(|it| it.oid == COMMON_NAME).filter_map(text);
    names.extend(common.map(|name| format!("CN={name}").into_boxed_str()));
    names
}

fn alternative(name: &GeneralName) -> Option<Box<str>> {
    let text = match name {
        GeneralName::DnsName(name) => format!("SAN:DNS:{name}"),
        GeneralName::UniformResourceIdentifier(uri) => format!("SAN:URI:{uri}"),
        GeneralName::Rfc822Name(address) => format!("SAN:EMAIL:{address}"),
        _ => return None,
    };
    Some(text.into())
}

/// The text of a part of a subject, in the kinds that certificates have.
fn text(part: &AttributeTypeAndValue) -> Option<String> {
    let value = &part.value;
    match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok().map(|it| it.to_string()),
        Tag::PrintableString => {
            value.decode_as::<PrintableStringRef<'_>>().ok().map(|it| it.to_string())
        }
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>().ok().map(|it| it.to_string()),
        _ => None,
    }
}
