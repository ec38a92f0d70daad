//! How clients log in: the values between a protocol session, which reads and writes bytes, and
//! the server, which knows the users.
//!
//! A session gives a [`LoginStep`] and does no command before the [`LoginAnswer`] has come.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroizing;

use crate::{QuotaReached, Rights};

/// Bytes that no log may show, such as a password. They are overwritten when they are dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes. The caller leaves no copy behind.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes.to_vec())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The hash function of a SCRAM mechanism (RFC 5802, RFC 7677).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScramHash {
    /// SCRAM-SHA-256.
    Sha256,
    /// SCRAM-SHA-512.
    Sha512,
}

/// A step that a client takes to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// A name and its password: AMQP's PLAIN, Redis's AUTH, HTTP's Basic.
    Password {
        /// The name of the user.
        user: Box<str>,
        /// The password.
        password: Secret,
    },
    /// The client's first message of a SCRAM exchange. → [`LoginAnswer::Challenge`] or a refusal
    ScramFirst {
        /// The hash function.
        hash: ScramHash,
        /// The message.
        message: Secret,
    },
    /// The client's last message of the exchange that it began.
    ScramFinal {
        /// The message.
        message: Secret,
    },
    /// The certificate that the connection has verified: SASL's EXTERNAL.
    Certificate {
        /// The user that the client wants to be; empty: the one of the certificate.
        user: Box<str>,
    },
    /// The user of the system that the client's process belongs to, on a Unix socket: SASL's
    /// EXTERNAL.
    UnixUser {
        /// The user that the client wants to be; empty: the one that the process belongs to.
        user: Box<str>,
    },
    /// The user for clients without a name: SASL's ANONYMOUS.
    Anonymous,
    /// A bearer token: HTTP's Bearer, SASL's OAUTHBEARER and XOAUTH2, PLAIN without a name.
    Token {
        /// The user that the client wants to be; empty: the one of the token.
        user: Box<str>,
        /// The token.
        token: Secret,
    },
    /// The user that the listener itself has, as which each of its connections acts.
    ListenerUser,
}

impl LoginStep {
    /// Bytes of what the client sent.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Password { user, password } => user.len() + password.expose().len(),
            Self::ScramFirst { message, .. } | Self::ScramFinal { message } => {
                message.expose().len()
            }
            Self::Certificate { user } | Self::UnixUser { user } => user.len(),
            Self::Token { user, token } => user.len() + token.expose().len(),
            Self::Anonymous | Self::ListenerUser => 0,
        }
    }
}

impl LoginOffer {
    /// The step that a connection takes unasked, in protocols in which its client says nothing:
    /// as the user of its listener, by its certificate, by its process, or without a name.
    #[must_use]
    pub fn unasked_step(self) -> Option<LoginStep> {
        match self {
            Self { listener: true, .. } => Some(LoginStep::ListenerUser),
            _ => self.external_step(Box::default()).or_else(|| self.nameless_step()),
        }
    }

    /// The step of a client that something else than its words proves: its certificate, or the
    /// system for its process. It wants to be this user; empty: the one that is proved.
    #[must_use]
    pub fn external_step(self, user: Box<str>) -> Option<LoginStep> {
        match self {
            Self { certificate: true, .. } => Some(LoginStep::Certificate { user }),
            Self { unix: true, .. } => Some(LoginStep::UnixUser { user }),
            _ => None,
        }
    }

    /// The step of a client that gives no name.
    #[must_use]
    pub const fn nameless_step(self) -> Option<LoginStep> {
        match self {
            Self { listener: true, .. } => Some(LoginStep::ListenerUser),
            Self { anonymous: true, .. } => Some(LoginStep::Anonymous),
            _ => None,
        }
    }
}

/// The answer to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginAnswer {
    /// The server's first message of SCRAM: the client has to answer.
    Challenge(Vec<u8>),
    /// The client is this user.
    Granted {
        /// The user's rights.
        rights: Arc<Rights>,
        /// The last message of SCRAM, which proves the server; else empty.
        proof: Vec<u8>,
    },
    /// It is no user, or not this one: the answer never tells which.
    Refused,
    /// Too many log in now, or this client has failed too often of late.
    Busy,
    /// The client is this user, which has as many connections as it may.
    Full(Box<QuotaReached>),
}

/// The ways of logging in that a listener offers to one connection. Without users there is no such
/// offer, and every client may do everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginOffer {
    /// A password in the clear: over TLS, loopback and Unix sockets only.
    pub password: bool,
    /// The verified certificate of the connection.
    pub certificate: bool,
    /// The user of the system that the client's process belongs to: it is one of the users.
    pub unix: bool,
    /// No name at all.
    pub anonymous: bool,
    /// A bearer token by a mechanism of its own: where there are issuers of such, and the client
    /// may send a password.
    pub token: bool,
    /// The listener has a user of its own: each connection acts as that one, and no other way of
    /// logging in is taken.
    pub listener: bool,
}

impl LoginOffer {
    /// No way at all.
    pub const NOTHING: Self = Self {
        password: false,
        certificate: false,
        unix: false,
        anonymous: false,
        token: false,
        listener: false,
    };
}

/// The one that a client is before it says a word, as its listener or the system tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Introduction {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The user that its listener has.
    ListenerUser(Arc<str>),
    /// The number of the system's user that its process belongs to, on a Unix socket.
    UnixUser(u32),
}
