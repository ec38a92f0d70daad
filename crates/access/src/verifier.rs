//! The verifiers of RFC 5802, which are kept in place of a password: none can be read from them.
//!
//! ```text
//! SaltedPassword = PBKDF2(password, salt, iterations)
//! StoredKey      = H(HMAC(SaltedPassword, "Client Key"))
//! ServerKey      = HMAC(SaltedPassword, "Server Key")
//! text           = ITERATIONS$SALT$STOREDKEY$SERVERKEY      base64 with padding (RFC 4648)
//! ```
//! A SCRAM exchange needs two HMACs of it. A password in the clear costs the whole derivation.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{ScramHash, Secret};
use ring::{digest, hmac, pbkdf2};
use subtle::ConstantTimeEq as _;

/// Iterations of every verifier. All have the same, and names that are no users as well, so that
/// the number tells nothing. 16,384 of SHA-256 take about 2 ms; with a generated password of 160
/// bits the number does not matter.
pub(crate) const ITERATIONS: NonZeroU32 = NonZeroU32::new(16_384).expect("it is not zero");

/// Bytes of a new salt.
pub const SALT_BYTES: usize = 16;

/// Bytes that the salt of a file may have.
const SALT_BYTES_MAX: usize = 64;

/// The verifier of one password for one hash function.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    hash: ScramHash,
    iterations: NonZeroU32,
    salt: Box<[u8]>,
    stored_key: Box<[u8]>,
    server_key: Box<[u8]>,
}

impl Verifier {
    /// Derives it from a password. The salt is random.
    #[must_use]
    pub fn derive(hash: ScramHash, password: &Secret, salt: &[u8]) -> Self {
        Self::derive_with(hash, password, salt, ITERATIONS)
    }

    pub(crate) fn derive_with(
        hash: ScramHash,
        password: &Secret,
        salt: &[u8],
        iterations: NonZeroU32,
    ) -> Self {
        let salted = salted_password(hash, password, salt, iterations);
        let key = hmac::Key::new(hmac_of(hash), salted.expose());
        let client_key = hmac::sign(&key, b"Client Key");
        let stored_key = digest::digest(digest_of(hash), client_key.as_ref());
        let server_key = hmac::sign(&key, b"Server Key");
        Self {
            hash,
            iterations,
            salt: salt.into(),
            stored_key: stored_key.as_ref().into(),
            server_key: server_key.as_ref().into(),
        }
    }

    /// A verifier that no password fits, for a name that is no user: the same each time for the
    /// same key and name.
    pub(crate) fn decoy(hash: ScramHash, key: &hmac::Key, name: &str) -> Self {
        let part = |what: &str| {
            let mut context = hmac::Context::with_key(key);
            for text in [what, "\0", hash_name(hash), "\0", name] {
                context.update(text.as_bytes());
            }
            context.sign()
        };
        let salt = part("salt");
        let salt = salt.as_ref().get(..SALT_BYTES).expect("invariant: a tag has 32 bytes");
        let wide = |what: &str| digest::digest(digest_of(hash), part(what).as_ref());
        Self {
            hash,
            iterations: ITERATIONS,
            salt: salt.into(),
            stored_key: wide("stored key").as_ref().into(),
            server_key: wide("server key").as_ref().into(),
        }
    }

    /// Reads the text of a file.
    pub(crate) fn of_text(hash: ScramHash, text: &str) -> Result<Self, &'static str> {
        let mut parts = text.split('$');
        let mut part = || parts.next().ok_or(FORM);
        let (iterations, salt, stored_key, server_key) = (part()?, part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(FORM);
        }
        if iterations != format!("{ITERATIONS}") {
            return Err("has not 16384 iterations");
        }
        let bytes = |text: &str| STANDARD.decode(text).map(Box::<[u8]>::from).map_err(|_| FORM);
        let (salt, stored_key, server_key) = (bytes(salt)?, bytes(stored_key)?, bytes(server_key)?);
        if !(SALT_BYTES / 2..=SALT_BYTES_MAX).contains(&salt.len()) {
            return Err("has a salt of fewer than 8 or more than 64 bytes");
        }
        let length = digest_of(hash).output_len();
        if stored_key.len() != length || server_key.len() != length {
            return Err("has keys of another length than its hash function");
        }
        Ok(Self { hash, iterations: ITERATIONS, salt, stored_key, server_key })
    }

    /// The text for a file.
    #[must_use]
    pub fn text(&self) -> String {
        let [salt, stored_key, server_key] =
            [&self.salt, &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        format!("{}${salt}${stored_key}${server_key}", self.iterations)
    }

    /// True if this is the password. It derives, which takes milliseconds.
    pub(crate) fn fits(&self, password: &Secret) -> bool {
        let other = Self::derive_with(self.hash, password, &self.salt, self.iterations);
        other.stored_key.ct_eq(&self.stored_key).into()
    }

    /// Checks the client's proof over the messages of an exchange; gives the server's signature if
    /// the client knows the password.
    pub(crate) fn prove(&self, messages: &[u8], proof: &[u8]) -> Option<hmac::Tag> {
        let stored = hmac::Key::new(hmac_of(self.hash), &self.stored_key);
        let signature = hmac::sign(&stored, messages);
        if proof.len() != signature.as_ref().len() {
            return None;
        }
        let client_key = proof.iter().zip(signature.as_ref()).map(|(proof, byte)| proof ^ byte);
        let client_key = Secret::new(client_key.collect());
        let found = digest::digest(digest_of(self.hash), client_key.expose());
        if !bool::from(found.as_ref().ct_eq(&self.stored_key)) {
            return None;
        }
        let server = hmac::Key::new(hmac_of(self.hash), &self.server_key);
        Some(hmac::sign(&server, messages))
    }

    /// The salt and the iterations, as a challenge says them.
    pub(crate) fn challenge(&self) -> String {
        format!("s={},i={}", STANDARD.encode(&self.salt), self.iterations)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("hash", &self.hash).finish_non_exhaustive()
    }
}

const FORM: &str = "is not ITERATIONS$SALT$STOREDKEY$SERVERKEY with base64";

fn salted_password(
    hash: ScramHash,
    password: &Secret,
    salt: &[u8],
    iterations: NonZeroU32,
) -> Secret {
    let algorithm = match hash {
        ScramHash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        ScramHash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
    };
    let mut salted = alloc::vec![0; digest_of(hash).output_len()];
    pbkdf2::derive(algorithm, iterations, salt, password.expose(), &mut salted);
    Secret::new(salted)
}

fn hmac_of(hash: ScramHash) -> hmac::Algorithm {
    match hash {
        ScramHash::Sha256 => hmac::HMAC_SHA256,
        ScramHash::Sha512 => hmac::HMAC_SHA512,
    }
}

fn digest_of(hash: ScramHash) -> &'static digest::Algorithm {
    match hash {
        ScramHash::Sha256 => &digest::SHA256,
        ScramHash::Sha512 => &digest::SHA512,
    }
}

const fn hash_name(hash: ScramHash) -> &'static str {
    match hash {
        ScramHash::Sha256 => "sha-256",
        ScramHash::Sha512 => "sha-512",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::from(text.as_bytes())
    }

    #[test]
    fn verifier_text_reads_back() {
        for hash in [ScramHash::Sha256, ScramHash::Sha512] {
            let verifier = Verifier::derive(hash, &secret("pencil"), b"0123456789abcdef");
            assert!(verifier.text().starts_with("16384$MDEyMzQ1Njc4OWFiY2RlZg==$"));
            assert_eq!(Verifier::of_text(hash, &verifier.text()), Ok(verifier.clone()));
            assert!(verifier.fits(&secret("pencil")) && !verifier.fits(&secret("pencil ")));
            assert!(!std::format!("{verifier:?}").contains("MDEy"));
        }
    }

    #[test]
    fn other_texts_are_no_verifiers() {
        let verifier = Verifier::derive(ScramHash::Sha256, &secret("x"), b"0123456789abcdef");
        let good = verifier.text();
        let bad = [
            String::new(),
            good.replace("16384", "4096"),
            good.replace("16384", "016384"),
            good.replace('=', ""),
            good.replace('$', ":"),
            std::format!("{good}$"),
            std::format!(" {good}"),
            good.replace("MDEyMzQ1Njc4OWFiY2RlZg==", ""),
        ];
        for text in bad {
            assert!(Verifier::of_text(ScramHash::Sha256, &text).is_err(), "{text}");
        }
        assert!(Verifier::of_text(ScramHash::Sha512, &good).is_err());
    }

    #[test]
    fn decoys_differ_by_name_and_hash() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"key");
        let decoy = |hash, name| Verifier::decoy(hash, &key, name);
        let one = decoy(ScramHash::Sha256, "a");
        assert_eq!(one, decoy(ScramHash::Sha256, "a"));
        assert_ne!(one.salt, decoy(ScramHash::Sha256, "b").salt);
        assert_ne!(one.salt, decoy(ScramHash::Sha512, "a").salt);
        assert_eq!(decoy(ScramHash::Sha512, "a").stored_key.len(), 64);
        assert!(!one.fits(&secret("")));
    }
}
