//! Users, and how they log in.
//!
//! [`Users`] is the content of a users file. [`Doorkeeper`] takes the login steps of clients and
//! answers them: passwords, SCRAM exchanges, certificates, bearer tokens, also those that an issuer
//! signs ([`Issuer`]). It holds the exchanges in
//! progress, and how long a user or an address that failed has to wait.
//!
//! It contains no socket, file, thread, clock or randomness of its own: the time and unguessable
//! numbers are given. It says who a client is, never which commands that user may give.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod back_off;
mod doorkeeper;
mod jwt;
mod name;
mod problem;
mod remembered;
mod scram;
#[cfg(test)]
mod test_client;
#[cfg(test)]
mod test_signer;
mod users;
mod verifier;

pub use doorkeeper::{ConnectionId, Doorkeeper, LoginPeer};
pub use jwt::{Issuer, KeySet, KeySetError, TokenFault};
pub use name::{check_user_name, new_password};
pub use problem::{Problem, Problems};
pub use users::{BearerToken, UnixUser, User, Users, decoy_key_text, limits, token_digest};
pub use verifier::{SALT_BYTES, Verifier};

/// A name as errors show it, on one line.
fn shown(name: &str) -> alloc::string::String {
    name.escape_debug().collect()
}
