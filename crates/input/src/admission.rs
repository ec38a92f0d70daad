//! The clients that a listener takes, and as whom: by their addresses, or with a user of its own.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

use ipnet::IpNet;
use model::Introduction;

use crate::Proxied;

/// A network: `10.1.0.0/16`, `2001:db8::/32`, or one address. A client by IPv4 at a socket of IPv6
/// counts as one by IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// A text that is no [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANetwork;

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let of_address = || text.parse::<IpAddr>().map(|it| IpNet::from(it.to_canonical()));
        let network = text.parse().or_else(|_| of_address()).map_err(|_| NotANetwork)?;
        // Bits behind the prefix say that something else was meant.
        (network.trunc() == network).then_some(Self(network)).ok_or(NotANetwork)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Network {
    /// True if the address is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// The clients that a listener takes, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// The user that each connection acts as, without a login; `None`: clients log in.
    pub user: Option<Arc<str>>,
    /// Clients may connect from these; none: from everywhere. Only for listeners in the network.
    pub from: Vec<Network>,
    /// The addresses of proxies, which tell where their clients are. Only for listeners in the
    /// network.
    pub proxies: Vec<Network>,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// Its peer is a client.
    Client,
    /// Its peer is a proxy at this address: it has to tell first where its client is.
    Proxy(SocketAddr),
    /// Its peer may not connect.
    Closed,
}

impl Admission {
    /// How a connection of this peer begins; `None`: it comes by a socket in the file system.
    #[must_use]
    pub fn entrance(&self, peer: Option<SocketAddr>) -> Entrance {
        let is_proxy = |peer: &SocketAddr| self.proxies.iter().any(|it| it.contains(peer.ip()));
        match peer {
            Some(proxy) if is_proxy(&proxy) => Entrance::Proxy(proxy),
            peer if self.admits(peer) => Entrance::Client,
            _ => Entrance::Closed,
        }
    }

    /// True if the client that a proxy tells of may connect. The proxy itself may.
    #[must_use]
    pub fn admits_proxied(&self, told: Proxied, proxy: SocketAddr) -> bool {
        told == Proxied::Own || self.admits(Some(told.client(proxy)))
    }

    /// True if addresses decide something, which clients of a socket in the file system have not.
    #[must_use]
    pub const fn is_by_address(&self) -> bool {
        !self.from.is_empty() || !self.proxies.is_empty()
    }

    /// True if a client from there may connect; `None`: it comes by a socket in the file system.
    #[must_use]
    pub fn admits(&self, client: Option<SocketAddr>) -> bool {
        let is_in = |client: SocketAddr| self.from.iter().any(|it| it.contains(client.ip()));
        self.from.is_empty() || client.is_none_or(is_in)
    }

    /// The one that a client is before it says a word. The system tells the number of the user that
    /// its process belongs to, on Unix sockets.
    #[must_use]
    pub fn introduction(&self, unix_user: Option<u32>) -> Introduction {
        match &self.user {
            Some(user) => Introduction::ListenerUser(Arc::clone(user)),
            None => unix_user.map_or(Introduction::Unknown, Introduction::UnixUser),
        }
    }
}

/// Networks of one list of a listener.
pub const NETWORKS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn networks_have_prefixes() {
        for (text, inside, outside) in [
            ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.1.0.0/16", "::ffff:10.1.0.1", "::1"),
            ("::ffff:10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1", "::1", "127.0.0.1"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
        ] {
            assert!(network(text).contains(inside.parse().unwrap()), "{text} {inside}");
            assert!(!network(text).contains(outside.parse().unwrap()), "{text} {outside}");
        }
        for wrong in ["", "10.1", "10.1.0.0/33", "10.1.0.1/16", "::/129", "host", "10.1.0.0/-1"] {
            assert_eq!(wrong.parse::<Network>(), Err(NotANetwork), "{wrong}");
        }
    }

    #[test]
    fn admission_is_by_address() {
        let mut admission = Admission::default();
        let admits = |admission: &Admission, text: &str| {
            admission.admits(Some(text.parse().unwrap_or_else(|_| panic!("{text}"))))
        };
        assert!(admission.admits(None) && admits(&admission, "[::1]:1"));
        admission.from = Vec::from(["192.0.2.0/24", "10.0.0.0/30"].map(network));
        for text in ["192.0.2.9:1", "10.0.0.3:4", "[::ffff:10.0.0.3]:4"] {
            assert!(admits(&admission, text), "{text}");
        }
        for text in ["10.0.0.4:1", "[::1]:1"] {
            assert!(!admits(&admission, text), "{text}");
        }
        assert!(admission.admits(None), "a Unix socket has no addresses");
    }

    #[test]
    fn proxies_answer_for_their_clients() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let from = Vec::from([network("192.0.2.0/24")]);
        let proxies = Vec::from([network("10.0.0.1")]);
        let admission = Admission { from, proxies, ..Admission::default() };
        let proxy = address("10.0.0.1:5");
        assert_eq!(admission.entrance(Some(proxy)), Entrance::Proxy(proxy));
        assert_eq!(admission.entrance(Some(address("192.0.2.9:5"))), Entrance::Client);
        assert_eq!(admission.entrance(Some(address("10.0.0.2:5"))), Entrance::Closed);
        assert_eq!(admission.entrance(None), Entrance::Client);
        let told = |client: &str| Proxied::From { client: address(client), to: proxy };
        assert!(admission.admits_proxied(told("192.0.2.9:1"), proxy));
        assert!(!admission.admits_proxied(told("10.0.0.1:1"), proxy));
        assert!(admission.admits_proxied(Proxied::Own, proxy), "as a check of the proxy's own");
        assert!(!admission.admits_proxied(Proxied::Nameless, proxy));
    }

    #[test]
    fn listener_user_comes_before_process() {
        let mut admission = Admission::default();
        assert_eq!(admission.introduction(None), Introduction::Unknown);
        assert_eq!(admission.introduction(Some(7)), Introduction::UnixUser(7));
        admission.user = Some("jobs".into());
        assert_eq!(admission.introduction(Some(7)), Introduction::ListenerUser("jobs".into()));
    }
}
