//! The clients that a listener takes, and as whom: by their addresses, or with a user of its own.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

use ipnet::IpNet;
use model::Introduction;

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
}

impl Admission {
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
    fn listener_user_comes_before_process() {
        let mut admission = Admission::default();
        assert_eq!(admission.introduction(None), Introduction::Unknown);
        assert_eq!(admission.introduction(Some(7)), Introduction::UnixUser(7));
        admission.user = Some("jobs".into());
        assert_eq!(admission.introduction(Some(7)), Introduction::ListenerUser("jobs".into()));
    }
}
