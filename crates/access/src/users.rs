//! The content of a users file.
//!
//! ```toml
//! decoy-key = "KEY"                # 32 bytes in base64: salts of names that are no users
//! anonymous = "guest"              # the user of clients without a name
//!
//! [users.orders]
//! scram-sha-256 = "16384$SALT$STOREDKEY$SERVERKEY"
//! scram-sha-512 = "16384$SALT$STOREDKEY$SERVERKEY"
//! certificates = ["SAN:URI:spiffe://corp/orders", "CN=orders"]
//! unix-users = ["www-data", "1001"] # users of the system, whose processes are this user
//! groups = ["workers"]
//! allow = ["send,look orders.*"]   # see model::Rights
//! deny = ["look orders.audit"]
//! limits = { connections = 50, bytes = "2G" }     # see model::Quota
//! disabled = true
//! expires = 2027-01-01             # midnight UTC, or a moment: 2027-01-01T12:00:00Z
//!
//! [limits]                         # of users that have no other
//! queues = 1000
//!
//! [users.guest]
//!
//! [groups.workers]
//! allow = ["receive jobs.*"]
//!
//! [tokens]
//! ci = { sha256 = "64 hexadecimal digits", user = "orders", expires = 2027-01-01 }
//!
//! [[jwt]]                          # or [jwt], if there is one issuer only
//! issuer = "https://login.example.com/realms/corp"
//! audience = "dunlin"
//! jwks-file = "corp.jwks"          # relative to this file
//! user-claim = "sub"               # the claim that names the user
//! subjects = { "3f1c" = "orders" } # with it, only these subjects are users
//! ```
//! Keys that are not listed here are refused: a mistyped `disabled` must not be skipped.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{Nanos, Rights, ScramHash, UserRights};
use ring::digest;
use subtle::ConstantTimeEq as _;

use crate::jwt::{self, Claimed, Issuer, KeySet, TokenFault};
use crate::problem::Problems;
use crate::shown;
use crate::users::reading::Reader;
use crate::verifier::Verifier;

mod issuers;
mod reading;
mod unix_user;

pub use unix_user::UnixUser;

/// The bounds of a users file, and of what clients send to log in.
pub mod limits {
    /// Bytes of the file: 10,000 users with both verifiers take a third of it.
    pub const USERS_FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
    /// Groups of a file.
    pub const GROUPS_MAX: usize = 1_000;
    /// Groups of a user.
    pub const USER_GROUPS_MAX: usize = 64;
    /// Users of a file.
    pub const USERS_MAX: usize = 10_000;
    /// Bearer tokens of a file.
    pub const TOKENS_MAX: usize = 10_000;
    /// Certificates that one user may have.
    pub const USER_CERTIFICATES_MAX: usize = 64;
    /// Users of the system that one user may have.
    pub const USER_UNIX_USERS_MAX: usize = 64;
    /// Bytes of the name of a user of the system.
    pub const UNIX_USER_BYTES_MAX: usize = 256;
    /// Bytes of the text that names a certificate.
    pub const CERTIFICATE_BYTES_MAX: usize = 1024;
    /// Bytes of the name of a user or token.
    pub const NAME_BYTES_MAX: usize = 128;
    /// Bytes of a password.
    pub const PASSWORD_BYTES_MAX: usize = 1024;
    /// Characters of a password that is set.
    pub const PASSWORD_CHARS_MIN: usize = 8;
    /// Bytes of a bearer token that is looked at, if it is no JWT.
    pub const TOKEN_BYTES_MAX: usize = 1024;
    /// Bytes of a JWT that is looked at: those with many groups have 4 KiB.
    pub const JWT_BYTES_MAX: usize = 8 * 1024;
    /// Issuers of JWT in a file.
    pub const JWT_ISSUERS_MAX: usize = 16;
    /// Subjects of an issuer that are mapped to users.
    pub const JWT_SUBJECTS_MAX: usize = 10_000;
    /// Bytes of an issuer, an audience and the name of a claim.
    pub const CLAIM_BYTES_MAX: usize = 1024;
    /// Bytes of the path of a file of keys.
    pub const JWKS_PATH_BYTES_MAX: usize = 4096;
    /// Bytes of a file of keys: 64 keys with their certificates take less.
    pub const JWKS_BYTES_MAX: usize = 256 * 1024;
    /// Keys in such a file, those that are passed over included.
    pub const JWKS_KEYS_MAX: usize = 64;
    /// Bytes of one message of a SCRAM exchange.
    pub const SCRAM_MESSAGE_BYTES_MAX: usize = 4096;
    /// Faults of a file that are told at once.
    pub const PROBLEMS_MAX: usize = 100;
}

/// The users of a broker, as their file says them.
#[derive(Debug, Default)]
pub struct Users {
    users: BTreeMap<Arc<str>, User>,
    tokens: BTreeMap<Box<str>, BearerToken>,
    /// Names of tokens by the first bytes of their digests.
    token_index: BTreeMap<[u8; TOKEN_INDEX_BYTES], Vec<Box<str>>>,
    /// Names of users by certificate.
    certificates: BTreeMap<Box<str>, Arc<str>>,
    /// Names of users by the number of a user of the system, once these are resolved.
    unix_users: BTreeMap<u32, Arc<str>>,
    anonymous: Option<Arc<str>>,
    decoy_key: Option<[u8; 32]>,
    issuers: Vec<Issuer>,
}

/// One user.
#[derive(Debug)]
pub struct User {
    name: Arc<str>,
    password: Option<Passwords>,
    certificates: Vec<Box<str>>,
    /// Each with its line in the file.
    unix_users: Vec<(usize, UnixUser)>,
    is_disabled: bool,
    groups: Vec<Box<str>>,
    rights: Arc<Rights>,
}

/// The verifiers of a user's password.
#[derive(Debug)]
struct Passwords {
    sha_256: Verifier,
    sha_512: Option<Verifier>,
}

/// A bearer token: the digest of a secret, and its user.
#[derive(Debug)]
pub struct BearerToken {
    digest: [u8; DIGEST_BYTES],
    user: Arc<str>,
    expires: Option<Nanos>,
}

const DIGEST_BYTES: usize = 32;
const TOKEN_INDEX_BYTES: usize = 8;

/// The digest that a users file keeps of a token: SHA-256 of the text that clients send.
#[must_use]
pub fn token_digest(token: &[u8]) -> [u8; DIGEST_BYTES] {
    let digest = digest::digest(&digest::SHA256, token);
    digest.as_ref().try_into().expect("invariant: SHA-256 has 32 bytes")
}

/// The text of a decoy key that these random bytes are.
#[must_use]
pub fn decoy_key_text(key: &[u8; 32]) -> String {
    STANDARD.encode(key)
}

impl Users {
    /// Reads the text of a users file.
    ///
    /// # Errors
    /// [`Problems`]: all faults that it has.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        Reader::new(text).read()
    }

    /// The users, by name.
    pub fn iter(&self) -> impl Iterator<Item = &User> {
        self.users.values()
    }

    /// The rights of those that are not disabled.
    #[must_use]
    pub fn rights(&self) -> UserRights {
        let active = self.users.iter().filter(|(_, user)| !user.is_disabled);
        active.map(|(name, user)| (Arc::clone(name), Arc::clone(&user.rights))).collect()
    }

    /// The user of this name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    /// The bearer tokens and their names.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, &BearerToken)> {
        self.tokens.iter().map(|(name, token)| (&**name, token))
    }

    /// The user of clients without a name.
    #[must_use]
    pub fn anonymous(&self) -> Option<&str> {
        self.anonymous.as_deref()
    }

    /// True if this user exists, and is neither disabled nor expired. A connection that outlives
    /// its user's rights asks this again.
    #[must_use]
    pub fn is_active(&self, name: &str, now: Nanos) -> bool {
        self.user(name).is_some_and(|user| user.is_active(now))
    }

    /// The user of a verified certificate, by the first of its names that a user has.
    pub(crate) fn of_certificate(&self, names: &[Box<str>]) -> Option<&User> {
        let name = names.iter().find_map(|name| self.certificates.get(name))?;
        self.users.get(name)
    }

    /// The user of processes that belong to this user of the system.
    pub(crate) fn of_unix_user(&self, number: u32) -> Option<&User> {
        self.users.get(self.unix_users.get(&number)?)
    }

    /// The user of a token with this digest that has not expired, and the end of the token. The
    /// comparison takes as long for all with the same first bytes of the digest, which tell nothing
    /// about the token itself.
    pub(crate) fn of_token(
        &self,
        digest: &[u8; DIGEST_BYTES],
        now: Nanos,
    ) -> Option<(&User, Option<Nanos>)> {
        let names = self.token_index.get(&index_of(digest))?;
        let mut found = names.iter().filter_map(|name| self.tokens.get(name));
        let token = found.find(|token| bool::from(token.digest.ct_eq(digest)))?;
        let is_valid = token.expires.is_none_or(|end| now < end);
        let user = self.users.get(&token.user).filter(|_| is_valid)?;
        Some((user, token.expires))
    }

    /// The issuers of JWT. They have no keys yet: see [`Users::set_keys`].
    #[must_use]
    pub fn issuers(&self) -> &[Issuer] {
        &self.issuers
    }

    /// Gives keys to the issuers that name this file. The tokens of issuers without keys are
    /// refused.
    pub fn set_keys(&mut self, file: &str, keys: &Arc<KeySet>) {
        for issuer in self.issuers.iter_mut().filter(|issuer| &*issuer.keys_file == file) {
            issuer.keys = Some(Arc::clone(keys));
        }
    }

    /// Reads a JWT: nothing of it is believed yet.
    pub(crate) fn claimed<'t>(&self, token: &'t [u8]) -> Result<Claimed<'_, 't>, TokenFault> {
        jwt::read(&self.issuers, token)
    }

    /// The user of a JWT, if that is genuine and in time, and the end of the token. `is_signed`:
    /// its signature has been checked already.
    pub(crate) fn of_jwt(
        &self,
        claimed: &Claimed<'_, '_>,
        now: Nanos,
        is_signed: bool,
    ) -> Result<(&User, Option<Nanos>), TokenFault> {
        let end = claimed.check(now, is_signed)?;
        let user = claimed.user().and_then(|name| self.user(name)).ok_or(TokenFault::User)?;
        Ok((user, Some(end)))
    }

    pub(crate) const fn decoy_key(&self) -> Option<&[u8; 32]> {
        self.decoy_key.as_ref()
    }
}

impl User {
    /// The name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// True if the user has a password.
    #[must_use]
    pub const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// The certificates by which the user may log in.
    #[must_use]
    pub fn certificates(&self) -> &[Box<str>] {
        &self.certificates
    }

    /// The users of the system whose processes are this user on Unix sockets.
    pub fn unix_users(&self) -> impl Iterator<Item = &UnixUser> {
        self.unix_users.iter().map(|(_, user)| user)
    }

    /// True if an operator has disabled the user.
    #[must_use]
    pub const fn is_disabled(&self) -> bool {
        self.is_disabled
    }

    /// The moment from which on the user can do nothing.
    #[must_use]
    pub fn expires(&self) -> Option<Nanos> {
        self.rights.expires()
    }

    /// True if the user is neither disabled nor expired.
    #[must_use]
    pub fn is_active(&self, now: Nanos) -> bool {
        !self.is_disabled && self.expires().is_none_or(|end| now < end)
    }

    /// What the user may do, by its own rules and those of its groups.
    #[must_use]
    pub const fn rights(&self) -> &Arc<Rights> {
        &self.rights
    }

    /// The groups that the user is in.
    #[must_use]
    pub fn groups(&self) -> &[Box<str>] {
        &self.groups
    }

    /// The verifier for a hash function.
    pub(crate) fn verifier(&self, hash: ScramHash) -> Option<&Verifier> {
        let password = self.password.as_ref()?;
        match hash {
            ScramHash::Sha256 => Some(&password.sha_256),
            ScramHash::Sha512 => password.sha_512.as_ref(),
        }
    }
}

impl BearerToken {
    /// The name of its user.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The moment from which on it is worth nothing.
    #[must_use]
    pub const fn expires(&self) -> Option<Nanos> {
        self.expires
    }
}

fn index_of(digest: &[u8; DIGEST_BYTES]) -> [u8; TOKEN_INDEX_BYTES] {
    *digest.first_chunk().expect("invariant: a digest is longer")
}

#[cfg(test)]
#[path = "users_test.rs"]
mod tests;
