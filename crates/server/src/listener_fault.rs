//! Why a listener is not as it may be. Each names the remedy.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::address::Endpoint;

/// A listener whose options are at odds with each other or with the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenerFault {
    /// It has a user, and other machines reach it: all of them would act as that user.
    OpenUser {
        /// The protocol, as on the command line.
        scheme: &'static str,
        /// The address that it was to listen on.
        address: SocketAddr,
        /// The user.
        user: Arc<str>,
    },
    /// It has a user, and the server has no users.
    NoUsers {
        /// The user.
        user: Arc<str>,
    },
    /// Addresses are to decide who may connect to a socket in the file system.
    AddressesOfUnix {
        /// Which.
        endpoint: Endpoint,
    },
}

impl fmt::Display for ListenerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenUser { scheme, address, user } => write!(
                f,
                "{scheme} would listen on {address}, where everybody who reaches it would act as \
                 {user}: name the addresses that may connect behind it (,from=10.0.0.0/24), or \
                 say --insecure-listen {scheme}={address} where only those you trust reach it"
            ),
            Self::NoUsers { user } => write!(
                f,
                "a listener has the user {user}, and there are no users: say --users FILE, or \
                 leave user={user} out"
            ),
            Self::AddressesOfUnix { endpoint } => write!(
                f,
                "clients of {endpoint} have no address: leave from= and proxy-from= out, its mode \
                 and group say who may connect"
            ),
        }
    }
}

impl std::error::Error for ListenerFault {}
