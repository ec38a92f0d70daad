//! The compact form of a JWT: three parts in base64url, with a point between each two.

use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Secret;
use serde_json::Value;

use super::TokenFault;
use super::key_set::Algorithm;
use super::members::Members;

/// The parts of a token. None of them is believed yet.
pub(super) struct Compact<'t> {
    pub(super) header: Header,
    pub(super) claims: Members,
    /// The bytes that the signature is over.
    pub(super) signed: &'t [u8],
    pub(super) signature: Secret,
}

/// The members of a header that count.
pub(super) struct Header {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
}

impl<'t> Compact<'t> {
    pub(super) fn parse(token: &'t [u8]) -> Result<Self, TokenFault> {
        Self::parts(token).ok_or(TokenFault::Malformed).and_then(|(header, claims, signed, end)| {
            let claims = Members::parse(claims.expose()).ok_or(TokenFault::Malformed)?;
            Ok(Self { header: Header::read(&header)?, claims, signed, signature: end })
        })
    }

    fn parts(token: &'t [u8]) -> Option<(Members, Secret, &'t [u8], Secret)> {
        let mut parts = token.rsplitn(2, |byte| *byte == b'.');
        let (signature, signed) = (parts.next()?, parts.next()?);
        let mut parts = signed.split(|byte| *byte == b'.');
        let (header, claims) = (parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let header = Members::parse(decoded(header)?.expose())?;
        Some((header, decoded(claims)?, signed, decoded(signature)?))
    }
}

impl Header {
    /// `crit` names extensions that have to be understood, and none is (RFC 7515, section 4.1.11).
    fn read(header: &Members) -> Result<Self, TokenFault> {
        let is_jwt = match header.value("typ") {
            None => true,
            Some(kind) => kind.as_str().is_some_and(is_jwt),
        };
        let algorithm = header.text("alg").and_then(Algorithm::of_name);
        let algorithm = algorithm.filter(|_| is_jwt && header.value("crit").is_none());
        let key_id = match header.value("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(TokenFault::Header),
        };
        algorithm.map(|algorithm| Self { algorithm, key_id }).ok_or(TokenFault::Header)
    }
}

/// True for the media types of a JWT and of an access token (RFC 9068), in short or in full.
fn is_jwt(kind: &str) -> bool {
    const KINDS: [&str; 4] = ["JWT", "at+jwt", "application/jwt", "application/at+jwt"];
    KINDS.into_iter().any(|name| kind.eq_ignore_ascii_case(name))
}

/// The bytes of a part. Padding, other alphabets and bits that stand for nothing are refused.
fn decoded(part: &[u8]) -> Option<Secret> {
    // The decoder never moves the buffer, which would leave a copy behind.
    let mut bytes = Vec::with_capacity(part.len() + 3);
    URL_SAFE_NO_PAD.decode_vec(part, &mut bytes).ok()?;
    Some(Secret::new(bytes))
}
