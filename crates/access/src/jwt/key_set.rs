//! The public keys of an issuer: a JWK Set (RFC 7517).
//!
//! ```text
//! kty RSA                RS256    2,048 to 8,192 bits
//! kty EC, crv P-256      ES256
//! kty OKP, crv Ed25519   EdDSA
//! ```
//! Keys of another type, for encryption or for another algorithm are passed over: issuers list
//! them beside. A key of these types that is broken is a fault of the file, and so is a private
//! key.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde_json::Value;

use super::members::Members;
use crate::limits::{JWKS_BYTES_MAX, JWKS_KEYS_MAX};
use crate::shown;

/// The keys of an issuer, by name.
#[derive(Debug, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<Named>,
}

#[derive(Debug, PartialEq, Eq)]
struct Named {
    id: Option<Box<str>>,
    key: PublicKey,
}

/// A key; its type says how its signatures are made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PublicKey {
    Rsa { modulus: Box<[u8]>, exponent: Box<[u8]> },
    P256(Box<[u8]>),
    Ed25519(Box<[u8]>),
}

/// How a signature is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

/// The fault of a file of keys, with the key that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySetError(String);

impl fmt::Display for KeySetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for KeySetError {}

impl KeySet {
    /// Reads the text of a JWK Set.
    ///
    /// # Errors
    /// [`KeySetError`]: it is none, one of its keys is broken or private, or no key is of use.
    pub fn parse(text: &str) -> Result<Self, KeySetError> {
        let keys = Self::values(text).map_err(|what| KeySetError(what.into()))?;
        if keys.len() > JWKS_KEYS_MAX {
            let count = keys.len();
            return Err(KeySetError(format!("{count} keys are too many, {JWKS_KEYS_MAX} may be")));
        }
        let mut set = Self { keys: Vec::new() };
        let mut ids = BTreeSet::new();
        for (index, value) in keys.iter().enumerate() {
            let named = read_key(value).map_err(|what| fault(index, value, what))?;
            let Some(named) = named else { continue };
            if !ids.insert(named.id.clone()) {
                return Err(fault(index, value, "another key has the same kid, or none either"));
            }
            set.keys.push(named);
        }
        if set.keys.is_empty() {
            let what = "there is no key for RS256, ES256 or EdDSA: is this the issuer's file?";
            return Err(KeySetError(what.into()));
        }
        Ok(set)
    }

    fn values(text: &str) -> Result<Vec<Value>, &'static str> {
        if text.len() > JWKS_BYTES_MAX {
            return Err("the file has more than 262144 bytes");
        }
        let set = Members::parse(text.as_bytes()).ok_or("this is no JSON object")?;
        match set.value("keys") {
            Some(Value::Array(keys)) => Ok(keys.clone()),
            _ => Err("this is no JWK Set: it has no list `keys`"),
        }
    }

    /// How many keys it has that are of use.
    #[must_use]
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The key of this name. A token that names none can only mean the only key.
    pub(super) fn key(&self, id: Option<&str>) -> Option<&PublicKey> {
        let named = match (id, &*self.keys) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (id, keys) => keys.iter().find(|named| named.id.as_deref() == id),
        };
        named.map(|named| &named.key)
    }
}

impl PublicKey {
    pub(super) const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// True if the key has made this signature over these bytes.
    pub(super) fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::Rsa { modulus: n, exponent: e } => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            Self::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature)
            }
        };
        verified.is_ok()
    }
}

impl Algorithm {
    const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// `None`: it is not done here, as `none` and `HS256` are not.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// One key of the list; `None`: it is for something else.
fn read_key(value: &Value) -> Result<Option<Named>, &'static str> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let kind = text("kty").ok_or("kty is missing")?;
    let is_other = match (kind, text("crv")) {
        ("RSA", _) | ("EC", Some("P-256")) | ("OKP", Some("Ed25519")) => false,
        ("EC" | "OKP", None) => return Err("crv is missing"),
        _ => true,
    };
    if is_other || text("use").is_some_and(|purpose| purpose != "sig") || !may_verify(value) {
        return Ok(None);
    }
    if value.get("d").is_some() {
        return Err("it is a private key: give the public one, and make a new pair");
    }
    let key = match kind {
        "RSA" => rsa(value)?,
        "EC" => PublicKey::P256([vec![4], point(value, "x")?, point(value, "y")?].concat().into()),
        _ => PublicKey::Ed25519(point(value, "x")?.into()),
    };
    let id = match value.get("kid") {
        None => None,
        Some(Value::String(id)) => Some(id.as_str().into()),
        Some(_) => return Err("kid is no text"),
    };
    let is_named = text("alg").is_none_or(|name| name == key.algorithm().name());
    Ok(is_named.then_some(Named { id, key }))
}

/// True if the key may be used to verify: without a list of operations it may.
fn may_verify(key: &Value) -> bool {
    match key.get("key_ops") {
        Some(Value::Array(operations)) => operations.iter().any(|it| it == "verify"),
        _ => true,
    }
}

/// An RSA key within the bounds of the verifier, which would refuse each signature else.
fn rsa(key: &Value) -> Result<PublicKey, &'static str> {
    let (modulus, exponent) = (number(key, "n")?, number(key, "e")?);
    if !(RSA_BITS_MIN..=RSA_BITS_MAX).contains(&bits(&modulus)) {
        return Err("n has not 2,048 to 8,192 bits");
    }
    let is_odd = exponent.last().is_some_and(|byte| byte % 2 == 1);
    if !is_odd || exponent == [1] || bits(&exponent) > RSA_EXPONENT_BITS_MAX {
        return Err("e is not odd, from 3 up to 33 bits");
    }
    Ok(PublicKey::Rsa { modulus: modulus.into(), exponent: exponent.into() })
}

fn bits(number: &[u8]) -> usize {
    let first = number.first().map_or(0, |byte| byte.leading_zeros() as usize);
    number.len() * 8 - first
}

/// A number without its leading zeros, which some issuers write.
fn number(key: &Value, name: &str) -> Result<Vec<u8>, &'static str> {
    let bytes = bytes(key, name)?;
    Ok(bytes.into_iter().skip_while(|byte| *byte == 0).collect())
}

/// A coordinate of a curve whose coordinates have 32 bytes.
fn point(key: &Value, name: &str) -> Result<Vec<u8>, &'static str> {
    let bytes = bytes(key, name)?;
    let is_whole = bytes.len() == POINT_BYTES;
    is_whole.then_some(bytes).ok_or("x or y has not 32 bytes")
}

fn bytes(key: &Value, name: &str) -> Result<Vec<u8>, &'static str> {
    let text = key.get(name).and_then(Value::as_str);
    let bytes = text.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    bytes.ok_or("n and e, or x and y, are missing or not in base64url")
}

/// A fault of the key with this index.
fn fault(index: usize, key: &Value, what: &str) -> KeySetError {
    let id = key.get("kid").and_then(Value::as_str);
    let id: String =
        id.map(|id| shown(id).chars().take(ID_CHARS_MAX).collect()).unwrap_or_default();
    KeySetError(format!("key {} (kid {id:?}): {what}", index + 1))
}

const RSA_BITS_MIN: usize = 2_048;
const RSA_BITS_MAX: usize = 8_192;
const RSA_EXPONENT_BITS_MAX: usize = 33;
const POINT_BYTES: usize = 32;

/// Characters of a key's name in an error.
const ID_CHARS_MAX: usize = 100;
