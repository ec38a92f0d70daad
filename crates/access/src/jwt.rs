//! JSON Web Tokens (RFC 7519): bearer tokens that an issuer has signed.
//!
//! ```text
//! HEADER.CLAIMS.SIGNATURE -> claims, not yet believed -> the issuer by `iss` -> its key by `kid`
//!     -> the key's algorithm, its signature -> `aud`, `exp`, `nbf`, `iat` -> the user
//! ```
//! * The key decides about the algorithm; a header that names another one is refused. So no token
//!   is without a signature, and none is signed with a public key as a shared secret.
//! * Keys come from the issuer's file. What a header says about keys (`jwk`, `jku`, `x5c`) counts
//!   for nothing, but for the name of one (`kid`).
//! * A client never hears why its token is refused; a [`TokenFault`] is for the operator.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;

use model::Nanos;
use serde_json::Value;

use crate::jwt::compact::Compact;
pub use crate::jwt::key_set::{KeySet, KeySetError};
use crate::jwt::members::Members;

mod compact;
mod key_set;
mod members;

/// An issuer of tokens, as a users file says it.
#[derive(Debug)]
pub struct Issuer {
    pub(crate) name: Box<str>,
    pub(crate) audience: Box<str>,
    pub(crate) user_claim: Box<str>,
    /// The users of its subjects. Without it a subject is the name of a user.
    pub(crate) subjects: Option<BTreeMap<Box<str>, Arc<str>>>,
    pub(crate) keys_file: Box<str>,
    /// Without them each token is refused.
    pub(crate) keys: Option<Arc<KeySet>>,
}

/// The fault of a token, for the operator's log: no text of it comes from the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// It is no JWT.
    Malformed,
    /// Its header asks for what is not done here.
    Header,
    /// It is of another issuer.
    Issuer,
    /// Its key is none of the issuer's.
    Key,
    /// Its header names an algorithm that is not the key's.
    Algorithm,
    /// The key has not made its signature.
    Signature,
    /// It is for another audience.
    Audience,
    /// It has ended, or says no end.
    Expired,
    /// Its time has not come.
    Early,
    /// Its user is none, or may not log in.
    User,
    /// The client wants to be another user.
    OtherUser,
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is no JWT: three parts in base64url, the first two JSON objects",
            Self::Header => "its header has no alg of RS256, ES256 and EdDSA, another typ or crit",
            Self::Issuer => "its iss is no issuer of the users file",
            Self::Key => "its kid is no key of the issuer's file",
            Self::Algorithm => "its alg is not that of the key",
            Self::Signature => "its signature is not that of the key",
            Self::Audience => "its aud is not the audience of the users file",
            Self::Expired => "its exp is over or missing",
            Self::Early => "its nbf or iat is in the future: compare the clocks",
            Self::User => "its user is none of the users file, is disabled or has expired",
            Self::OtherUser => "its client wants to be another user",
        })
    }
}

impl Issuer {
    /// The value of `iss` in its tokens.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file of its keys, as the users file says it: a relative path is relative to that.
    #[must_use]
    pub fn keys_file(&self) -> &str {
        &self.keys_file
    }

    /// The name of the user whose token it is.
    fn user_of<'u>(&'u self, claims: &'u Members) -> Option<&'u str> {
        let subject = claims.text(&self.user_claim)?;
        match &self.subjects {
            Some(subjects) => subjects.get(subject).map(|user| &**user),
            None => Some(subject),
        }
    }
}

/// A token that has been read, and the issuer that it names. Nothing of it is believed yet.
pub(crate) struct Claimed<'i, 't> {
    issuer: &'i Issuer,
    compact: Compact<'t>,
}

/// True if a token has the form of a JWT.
pub(crate) fn is_compact(token: &[u8]) -> bool {
    token.iter().filter(|byte| **byte == b'.').count() == 2
}

/// Reads a token.
pub(crate) fn read<'i, 't>(
    issuers: &'i [Issuer],
    token: &'t [u8],
) -> Result<Claimed<'i, 't>, TokenFault> {
    let compact = Compact::parse(token)?;
    let name = compact.claims.text("iss");
    let issuer = issuers.iter().find(|issuer| Some(&*issuer.name) == name);
    Ok(Claimed { issuer: issuer.ok_or(TokenFault::Issuer)?, compact })
}

impl Claimed<'_, '_> {
    /// The name of the user whose token it says it is.
    pub(crate) fn user(&self) -> Option<&str> {
        self.issuer.user_of(&self.compact.claims)
    }

    /// Checks all but the user; gives the end of the token. `is_signed`: its signature has been
    /// checked already.
    pub(crate) fn check(&self, now: Nanos, is_signed: bool) -> Result<Nanos, TokenFault> {
        if !is_signed {
            self.check_signature()?;
        }
        if !is_for(&self.compact.claims, &self.issuer.audience) {
            return Err(TokenFault::Audience);
        }
        check_times(now, &self.compact.claims)
    }

    fn check_signature(&self) -> Result<(), TokenFault> {
        let Compact { header, signed, signature, .. } = &self.compact;
        let keys = self.issuer.keys.as_ref().ok_or(TokenFault::Key)?;
        let key = keys.key(header.key_id.as_deref()).ok_or(TokenFault::Key)?;
        if key.algorithm() != header.algorithm {
            return Err(TokenFault::Algorithm);
        }
        let is_right = key.verifies(signed, signature.expose());
        is_right.then_some(()).ok_or(TokenFault::Signature)
    }
}

/// True if the audience is among those of the token: one text, or a list of texts.
fn is_for(claims: &Members, audience: &str) -> bool {
    match claims.value("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(all)) => {
            all.iter().all(Value::is_string) && all.iter().any(|it| it.as_str() == Some(audience))
        }
        _ => false,
    }
}

/// The end of a token that is in time. A clock may be wrong by [`LEEWAY`] about its beginning; its
/// end is exact, as connections end by it.
fn check_times(now: Nanos, claims: &Members) -> Result<Nanos, TokenFault> {
    let end = claims.value("exp").and_then(moment_of).filter(|end| now < *end);
    let end = end.ok_or(TokenFault::Expired)?;
    for begin in ["nbf", "iat"].into_iter().filter_map(|name| claims.value(name)) {
        if moment_of(begin).is_none_or(|begin| begin > now + LEEWAY) {
            return Err(TokenFault::Early);
        }
    }
    Ok(end)
}

/// A moment in seconds since 1970 (`NumericDate`), which may have a fraction.
fn moment_of(value: &Value) -> Option<Nanos> {
    if let Some(seconds) = value.as_u64() {
        return Some(Nanos(seconds.saturating_mul(Nanos::SECOND.0)));
    }
    let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0)?;
    // The conversion gives the largest moment for what is later than that.
    Some(Nanos((seconds * Nanos::SECOND.0 as f64) as u64))
}

/// How far the clock of an issuer may be ahead.
pub(crate) const LEEWAY: Nanos = Nanos::from_secs(60);

#[cfg(test)]
#[path = "jwt_test.rs"]
mod tests;
