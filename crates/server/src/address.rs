//! The addresses a server listens on, and the clients each of them admits.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use input::Admission;

use crate::config::Protocol;
use crate::passed::PassedSocket;

/// One listener, as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The protocol of this listener.
    pub protocol: Protocol,
    /// It is spoken by TLS.
    pub by_tls: bool,
    /// The address.
    pub address: Address,
    /// Other machines may reach it, although no client has to authenticate.
    pub insecure: bool,
    /// The clients that it takes, and as whom.
    pub admission: Admission,
}

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// All addresses of a name, with the same port; port 0 picks one. Those that this machine does
    /// not have are left out if it has another.
    Tcp(Vec<SocketAddr>),
    /// A socket in the file system.
    Unix(UnixSocket),
    /// The sockets of this name that the process was started with.
    Passed {
        /// The name.
        name: Arc<str>,
        /// The sockets, once the server has given them to the listener.
        sockets: Vec<PassedSocket>,
    },
}

/// A socket in the file system, and the users that may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    /// Its file; the server replaces a socket that has no listener any more.
    pub path: PathBuf,
    /// Its permissions: to connect is to write.
    pub mode: u32,
    /// Its group; `None`: that of the process.
    pub group: Option<u32>,
}

impl UnixSocket {
    /// The permissions unless told otherwise: the owner and the group.
    pub const MODE: u32 = 0o660;
}

/// A listener of a running server, with the port that was picked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// The protocol of this listener.
    pub protocol: Protocol,
    /// It is spoken by TLS.
    pub by_tls: bool,
    /// The place that clients connect to.
    pub endpoint: Endpoint,
}

/// A place to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address of the network.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Listen {
    /// A listener at one address.
    #[must_use]
    pub fn tcp(protocol: Protocol, address: SocketAddr) -> Self {
        Self::at(protocol, false, Address::Tcp(vec![address]))
    }

    /// A listener on both loopback addresses.
    #[must_use]
    pub fn loopback(protocol: Protocol, port: u16) -> Self {
        Self::at(protocol, false, Address::loopback(port))
    }

    /// A listener at an address that takes all clients, by TLS or without.
    #[must_use]
    pub fn at(protocol: Protocol, by_tls: bool, address: Address) -> Self {
        Self { protocol, by_tls, address, insecure: false, admission: Admission::default() }
    }

    /// The name of its protocol on the command line.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        scheme(self.protocol, self.by_tls)
    }

    /// The first address by which other machines may reach it.
    pub(crate) fn exposed(&self) -> Option<SocketAddr> {
        let endpoints = self.address.endpoints();
        let mut addresses = endpoints.iter().filter_map(Endpoint::tcp);
        addresses.find(|it| !it.ip().to_canonical().is_loopback())
    }

    /// Its port, if it has one.
    pub(crate) fn port(&self) -> Option<u16> {
        let endpoints = self.address.endpoints();
        endpoints.iter().find_map(Endpoint::tcp).map(|address| address.port())
    }
}

impl Address {
    /// Both loopback addresses: clients that look up `localhost` may try either first.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        let both = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        Self::Tcp(both.map(|ip| SocketAddr::from((ip, port))).to_vec())
    }

    /// Each place of it.
    pub(crate) fn endpoints(&self) -> Vec<Endpoint> {
        match self {
            Self::Tcp(addresses) => addresses.iter().copied().map(Endpoint::Tcp).collect(),
            Self::Unix(socket) => vec![Endpoint::Unix(socket.path.clone())],
            Self::Passed { sockets, .. } => {
                sockets.iter().map(|socket| socket.endpoint().clone()).collect()
            }
        }
    }
}

impl Listening {
    /// The name of its protocol on the command line.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        scheme(self.protocol, self.by_tls)
    }

    /// Its address in the network, if it has one.
    #[must_use]
    pub const fn tcp(&self) -> Option<SocketAddr> {
        self.endpoint.tcp()
    }
}

impl Endpoint {
    /// Its address in the network, if it has one.
    #[must_use]
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The name of a protocol on the command line.
pub(crate) const fn scheme(protocol: Protocol, by_tls: bool) -> &'static str {
    if by_tls { protocol.name_by_tls() } else { protocol.name() }
}

/// An endpoint that two listeners claim: neither could tell its clients from the other's.
pub(crate) fn listed_twice(listen: &[Listen]) -> Option<Endpoint> {
    let mut seen = Vec::new();
    let all = listen.iter().flat_map(|listen| listen.address.endpoints());
    for endpoint in all.filter(|it| !matches!(it, Endpoint::Tcp(address) if address.port() == 0)) {
        if seen.contains(&endpoint) {
            return Some(endpoint);
        }
        seen.push(endpoint);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Listen {
        Listen::tcp(Protocol::Redis, text.parse().unwrap())
    }

    #[test]
    fn loopback_addresses_expose_nothing() {
        for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(tcp(text).exposed(), None, "{text}");
        }
        for text in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1", "[fe80::1]:1"] {
            assert_eq!(tcp(text).exposed(), Some(text.parse().unwrap()), "{text}");
        }
        assert_eq!(Listen::loopback(Protocol::Http, 80).exposed(), None);
        let path = PathBuf::from("/run/x.sock");
        let socket = UnixSocket { path, mode: 0o777, group: None };
        let address = Address::Unix(socket);
        assert_eq!(Listen { address, ..tcp("0.0.0.0:1") }.exposed(), None);
    }

    #[test]
    fn listener_address_is_unique() {
        let amqp = Listen::loopback(Protocol::Amqp, 7);
        assert_eq!(listed_twice(&[amqp.clone(), tcp("127.0.0.1:8")]), None);
        assert_eq!(listed_twice(&[tcp("127.0.0.1:0"), tcp("127.0.0.1:0")]), None);
        let twice = listed_twice(&[amqp, tcp("[::1]:7")]);
        assert_eq!(twice, Some(Endpoint::Tcp("[::1]:7".parse().unwrap())));
    }
}
