//! The far end of a connection: its address, its name for operators, and who the listener or the
//! system says that it is.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use input::Proxied;
use model::Introduction;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::net::{SocketAddrUnix, getpeername, getsockname};

use crate::address::Endpoint;

/// The client of a connection.
#[derive(Debug)]
pub(crate) struct Client {
    socket: Arc<OwnedFd>,
    /// The addresses of both ends, as far as the system or its proxy told when it connected.
    ends: Option<Box<resp::Ends>>,
    /// No other machine can read what goes over the socket.
    is_local: bool,
    introduction: Introduction,
}

impl Client {
    /// The client at the other end of a socket.
    pub(crate) fn new(socket: Arc<OwnedFd>, introduction: Introduction) -> Self {
        let ends = ends(&socket).map(Box::new);
        let is_local =
            ends.as_ref().is_none_or(|ends| ends.local.ip().to_canonical().is_loopback());
        Self { socket, ends, is_local, introduction }
    }

    /// The same, of which a proxy has told this.
    pub(crate) fn proxied(mut self, told: Proxied) -> Self {
        if let Proxied::From { client, to } = told {
            self.ends = Some(Box::new(resp::Ends { peer: client, local: to }));
        }
        self
    }

    /// The socket.
    pub(crate) const fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    /// The one that it is before it says a word.
    pub(crate) const fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    /// True if no other machine can read what goes over its socket.
    pub(crate) const fn is_local(&self) -> bool {
        self.is_local
    }

    /// The addresses of both ends, as far as the system or its proxy tells.
    pub(crate) fn ends(&self) -> Option<resp::Ends> {
        self.ends.as_deref().copied()
    }

    /// Its address and port; `None`: it came by a socket in the file system.
    pub(crate) fn socket_address(&self) -> Option<SocketAddr> {
        let peer = self.ends()?.peer;
        Some(SocketAddr::new(peer.ip().to_canonical(), peer.port()))
    }

    /// Its address, if it came by TCP.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.socket_address().map(|address| address.ip())
    }

    /// Its name for operators: its protocol, and its address.
    pub(crate) fn name(&self, scheme: &str) -> Arc<str> {
        let address = self.ends().map(|ends| Endpoint::Tcp(ends.peer));
        match address.or_else(|| socket_file(&self.socket)) {
            Some(peer) => format!("{scheme} {peer}").into(),
            None => scheme.into(),
        }
    }
}

/// The number of the system's user that the peer's process belonged to when it connected by a
/// socket in the file system.
// Not by `rustix`: its number of a process cannot be 0, which the system says of one in another
// container.
pub(crate) fn unix_user(socket: &impl AsFd) -> Option<u32> {
    getsockopt(socket, PeerCredentials).ok().map(|credentials| credentials.uid())
}

/// The socket in the file system that it came by.
fn socket_file(socket: &OwnedFd) -> Option<Endpoint> {
    let local = SocketAddrUnix::try_from(getsockname(socket).ok()?).ok()?;
    let path = local.path()?;
    Some(Endpoint::Unix(OsStr::from_bytes(path.to_bytes()).into()))
}

fn ends(socket: &OwnedFd) -> Option<resp::Ends> {
    let peer = SocketAddr::try_from(getpeername(socket).ok()??).ok()?;
    let local = SocketAddr::try_from(getsockname(socket).ok()?).ok()?;
    Some(resp::Ends { peer, local })
}

#[cfg(test)]
impl Client {
    /// The client of a test.
    pub(crate) fn of_test(socket: impl Into<OwnedFd>) -> Self {
        Self::new(Arc::new(socket.into()), Introduction::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn process_owner_is_known_by_number() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(unix_user(&ours), Some(rustix::process::geteuid().as_raw()));
        let client = Client::of_test(ours);
        assert_eq!((client.address(), &*client.name("redis")), (None, "redis"));
    }
}
