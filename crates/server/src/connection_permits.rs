//! How many connections may be open, and which one gives way to a new one.
//!
//! A connection that has sent no command costs its peer nothing, and keeps others out. So if no
//! permit is free, such a connection gives way to a new one: the oldest of the peer that has the
//! most of them. A connection that has sent a command keeps its permit. Ten more permits are for
//! operators: for HTTP from this machine.
//!
//! Where clients have to log in, such a connection is a stranger's. Strangers are fewer than
//! connections may be, so that they take little memory: one too many of a peer, or of all, makes
//! the oldest of that peer, or of the peer that has the most, give way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use rustix::net::{Shutdown, shutdown};
use tokio::sync::Notify;

/// All permits of a server.
#[derive(Debug)]
pub(crate) struct ConnectionPermits {
    connections_max: usize,
    /// Clients have to log in.
    has_users: bool,
    /// Connections that are open.
    open: AtomicUsize,
    silent: Mutex<SilentConnections>,
}

/// The permit of one connection; dropping it frees it.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    permits: Arc<ConnectionPermits>,
    /// Until its first command.
    silence: Option<(Origin, u64)>,
}

/// The peer that a connection counts for. A network of 64 bits of IPv6 is one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A socket in the file system.
    Local,
    /// A proxy that has not told yet where its client is.
    Proxy,
    V4(Ipv4Addr),
    V6([u16; 4]),
}

/// How a connection is asked to end.
#[derive(Debug)]
pub(crate) enum Exit {
    Socket(Weak<OwnedFd>),
    Task(Weak<Notify>),
}

/// Connections that have sent no command, oldest first.
#[derive(Debug, Default)]
struct SilentConnections {
    next: u64,
    by_origin: BTreeMap<Origin, BTreeMap<u64, Exit>>,
    /// How many each origin has.
    counts: BTreeSet<(usize, Origin)>,
    /// How many there are.
    total: usize,
    /// Those that were asked to end and have not yet.
    leaving: usize,
}

/// A permit, and the peer with the connection that gave way for it.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) permit: ConnectionPermit,
    pub(crate) gave_way: Option<Origin>,
}

/// A connection was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dismissed;

impl ConnectionPermits {
    pub(crate) fn new(connections_max: usize, has_users: bool) -> Arc<Self> {
        let open = AtomicUsize::new(0);
        Arc::new(Self { connections_max, has_users, open, silent: Mutex::default() })
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections that may be open, besides those of operators.
    pub(crate) const fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// A permit for one more connection. `None`: connections that sent commands have all of them.
    pub(crate) fn admit(
        self: &Arc<Self>,
        origin: Origin,
        exit: Exit,
        is_operator: bool,
    ) -> Option<Admission> {
        let mut silent = self.silent();
        let open = self.open.load(Ordering::Relaxed);
        let gave_way;
        if open >= self.connections_max {
            gave_way = silent.dismiss_one();
            let most = self.connections_max + if is_operator { OPERATOR_CONNECTIONS } else { 0 };
            if gave_way.is_none() && open >= most {
                return None;
            }
        } else {
            gave_way = self.dismiss_stranger(&mut silent, origin);
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        let silence = Some((origin, silent.insert(origin, exit)));
        drop(silent);
        Some(Admission {
            permit: ConnectionPermit { permits: Arc::clone(self), silence },
            gave_way,
        })
    }

    /// Asks a stranger to end if one more of an origin is too many. Without users there are none,
    /// but connections of proxies.
    fn dismiss_stranger(&self, silent: &mut SilentConnections, origin: Origin) -> Option<Origin> {
        let counts = self.has_users || origin == Origin::Proxy;
        counts.then(|| silent.dismiss_stranger(origin)).flatten()
    }

    fn silent(&self) -> MutexGuard<'_, SilentConnections> {
        self.silent.lock().expect("invariant: no thread panics with the permits")
    }
}

impl ConnectionPermit {
    /// The connection has sent a command.
    pub(crate) fn note_command(&mut self) {
        if let Some((origin, number)) = self.silence.take() {
            self.permits.silent().remove(origin, number);
        }
    }

    /// The connection counts for this peer from now on, as its proxy has told. Gives the peer with
    /// the connection that gave way for that.
    ///
    /// # Errors
    /// [`Dismissed`]: it was asked to end meanwhile.
    pub(crate) fn count_for(&mut self, origin: Origin) -> Result<Option<Origin>, Dismissed> {
        let (before, number) = self.silence.ok_or(Dismissed)?;
        let mut silent = self.permits.silent();
        let exit = silent.take(before, Some(number)).ok_or(Dismissed)?;
        let gave_way = self.permits.dismiss_stranger(&mut silent, origin);
        self.silence = Some((origin, silent.insert(origin, exit)));
        Ok(gave_way)
    }

    /// True if the connection has sent no command.
    pub(crate) const fn is_silent(&self) -> bool {
        self.silence.is_some()
    }
}

#[cfg(test)]
impl ConnectionPermit {
    /// The only permit of a test.
    pub(crate) fn of_test() -> Self {
        let admission =
            ConnectionPermits::new(1, false).admit(Origin::Local, Exit::Socket(Weak::new()), false);
        admission.unwrap().permit
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.note_command();
        self.permits.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SilentConnections {
    fn insert(&mut self, origin: Origin, exit: Exit) -> u64 {
        let number = self.next;
        self.next += 1;
        let own = self.by_origin.entry(origin).or_default();
        self.counts.remove(&(own.len(), origin));
        own.insert(number, exit);
        self.counts.insert((own.len(), origin));
        self.total += 1;
        number
    }

    /// A connection has sent a command, or is gone.
    fn remove(&mut self, origin: Origin, number: u64) {
        if self.take(origin, Some(number)).is_none() {
            self.leaving = self.leaving.saturating_sub(1);
        }
    }

    /// Takes this connection of an origin, or its oldest.
    fn take(&mut self, origin: Origin, number: Option<u64>) -> Option<Exit> {
        let own = self.by_origin.get_mut(&origin)?;
        let number = number.or_else(|| own.keys().next().copied())?;
        let count = own.len();
        let exit = own.remove(&number)?;
        self.total -= 1;
        self.counts.remove(&(count, origin));
        if count > 1 {
            self.counts.insert((count - 1, origin));
        } else {
            self.by_origin.remove(&origin);
        }
        Some(exit)
    }

    /// Asks one to end. Until it has ended it is open beside the one that came for it.
    fn dismiss_one(&mut self) -> Option<Origin> {
        let (_, origin) = *self.counts.last()?;
        self.dismiss(origin)
    }

    /// Asks a stranger to end if one more of an origin is too many.
    fn dismiss_stranger(&mut self, origin: Origin) -> Option<Origin> {
        let own = self.by_origin.get(&origin).map_or(0, BTreeMap::len);
        if own >= ORIGIN_STRANGERS_MAX && origin != Origin::Local {
            return self.dismiss(origin);
        }
        if self.total >= STRANGERS_MAX { self.dismiss_one() } else { None }
    }

    /// Asks the oldest of an origin to end.
    fn dismiss(&mut self, origin: Origin) -> Option<Origin> {
        if self.leaving >= LEAVING_MAX {
            return None;
        }
        self.take(origin, None)?.ask();
        self.leaving += 1;
        Some(origin)
    }
}

impl Exit {
    fn ask(&self) {
        match self {
            // Nothing to do: the connection is gone.
            Self::Socket(socket) => {
                if let Some(socket) = socket.upgrade() {
                    let _ = shutdown(socket, Shutdown::Both);
                }
            }
            Self::Task(task) => {
                if let Some(task) = task.upgrade() {
                    task.notify_one();
                }
            }
        }
    }
}

impl Origin {
    pub(crate) fn of(peer: Option<SocketAddr>) -> Self {
        match peer.map(|peer| peer.ip().to_canonical()) {
            None => Self::Local,
            Some(IpAddr::V4(address)) => Self::V4(address),
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("a Unix socket"),
            Self::Proxy => f.write_str("a proxy"),
            Self::V4(address) => address.fmt(f),
            Self::V6([a, b, c, d]) => write!(f, "{a:x}:{b:x}:{c:x}:{d:x}::/64"),
        }
    }
}

/// Permits besides the others, for an operator that has to find out why these are taken.
pub(crate) const OPERATOR_CONNECTIONS: usize = 10;

/// Strangers of one origin, and of all. A pool of connections that opens at once is smaller.
const ORIGIN_STRANGERS_MAX: usize = 512;
const STRANGERS_MAX: usize = 2_048;

/// Connections that were asked to end and may not have yet.
const LEAVING_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(last: u8) -> Origin {
        Origin::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    /// A connection that learns by a notification when it has to end.
    fn admit(
        permits: &Arc<ConnectionPermits>,
        last: u8,
    ) -> Option<(ConnectionPermit, Arc<Notify>)> {
        let exit_asked = Arc::new(Notify::new());
        let exit = Exit::Task(Arc::downgrade(&exit_asked));
        Some((permits.admit(origin(last), exit, false)?.permit, exit_asked))
    }

    fn was_asked(exit_asked: &Notify) -> bool {
        use std::task::{Context, Poll, Waker};
        let rung = std::pin::pin!(exit_asked.notified());
        rung.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn silent_connections_give_way_by_address() {
        let permits = ConnectionPermits::new(6, false);
        let mut few: Vec<_> = (0..2).map(|_| admit(&permits, 1).unwrap()).collect();
        let many: Vec<_> = (0..4).map(|_| admit(&permits, 2).unwrap()).collect();
        few.push(admit(&permits, 3).unwrap());
        assert!(was_asked(&many[0].1), "the oldest of the peer that has the most");
        assert!(many[1..].iter().chain(&few).all(|(_, exit_asked)| !was_asked(exit_asked)));
        drop(many);
        assert_eq!(permits.open(), 3);
        assert_eq!(permits.silent().leaving, 0);
    }

    #[test]
    fn commands_keep_their_permits() {
        let permits = ConnectionPermits::new(3, false);
        let mut all: Vec<_> = (0..3).map(|last| admit(&permits, last).unwrap()).collect();
        all.iter_mut().for_each(|(permit, _)| permit.note_command());
        assert!(admit(&permits, 9).is_none());
        assert!(
            all.iter().all(|(permit, exit_asked)| !permit.is_silent() && !was_asked(exit_asked))
        );
        all.pop();
        assert!(admit(&permits, 9).is_some());
        assert_eq!(permits.open(), 2);
    }

    #[test]
    fn operators_have_permits_of_their_own() {
        let permits = ConnectionPermits::new(1, false);
        let (mut first, _bell) = admit(&permits, 1).unwrap();
        first.note_command();
        let operator = || permits.admit(Origin::Local, Exit::Task(Weak::new()), true);
        let mut operators: Vec<_> =
            (0..OPERATOR_CONNECTIONS).map(|_| operator().unwrap()).collect();
        operators.iter_mut().for_each(|it| it.permit.note_command());
        assert!(operator().is_none());
        operators.clear();
        assert!(admit(&permits, 2).is_none());
        drop(first);
        assert!(admit(&permits, 2).is_some());
    }

    #[test]
    fn connections_hold_permits_until_they_end() {
        let permits = ConnectionPermits::new(100, false);
        let all: Vec<_> = (0..100 + LEAVING_MAX).map(|_| admit(&permits, 1).unwrap()).collect();
        assert!(admit(&permits, 1).is_none(), "until one has ended");
        drop(all);
        assert_eq!((permits.open(), permits.silent().leaving), (0, 0));
        assert!(permits.silent().by_origin.is_empty() && permits.silent().counts.is_empty());
    }

    #[test]
    fn strangers_are_few() {
        let permits = ConnectionPermits::new(10_000, true);
        let mut user = admit(&permits, 1).unwrap();
        user.0.note_command();
        let full: Vec<_> = (0..ORIGIN_STRANGERS_MAX).map(|_| admit(&permits, 1).unwrap()).collect();
        let _one = admit(&permits, 1).unwrap();
        assert!(was_asked(&full[0].1) && !was_asked(&full[1].1) && !was_asked(&user.1));
        // Of many origins the one with the most gives way.
        let others: Vec<_> = (0..STRANGERS_MAX - ORIGIN_STRANGERS_MAX)
            .map(|at| admit(&permits, 2 + (at % 100) as u8).unwrap())
            .collect();
        let _other = admit(&permits, 200).unwrap();
        assert!(was_asked(&full[1].1) && others.iter().all(|(_, exit)| !was_asked(exit)));
        assert_eq!(permits.silent().total, STRANGERS_MAX);
        drop((full, others, user));
        assert_eq!((permits.open(), permits.silent().total), (2, 2));
    }

    #[test]
    fn proxied_connections_count_for_clients() {
        let permits = ConnectionPermits::new(10_000, true);
        let admit_proxy = || {
            let exit_asked = Arc::new(Notify::new());
            let exit = Exit::Task(Arc::downgrade(&exit_asked));
            (permits.admit(Origin::Proxy, exit, false).unwrap().permit, exit_asked)
        };
        // A crowd of one proxy is no crowd of one client.
        let mut clients = Vec::new();
        for at in 0..2 * ORIGIN_STRANGERS_MAX {
            let (mut permit, asked) = admit_proxy();
            assert_eq!(permit.count_for(origin((at % 4) as u8)), Ok(None));
            clients.push((permit, asked));
        }
        // Those that have told nothing are bounded.
        let mut silent: Vec<_> = (0..=ORIGIN_STRANGERS_MAX).map(|_| admit_proxy()).collect();
        assert!(was_asked(&silent[0].1) && !was_asked(&silent[1].1));
        assert_eq!(silent[0].0.count_for(origin(1)), Err(Dismissed));
        assert!(clients.iter().all(|(_, asked)| !was_asked(asked)));
        // One too many of a client makes its oldest give way.
        for _ in 0..ORIGIN_STRANGERS_MAX / 2 {
            let (mut permit, asked) = admit_proxy();
            permit.count_for(origin(1)).unwrap();
            clients.push((permit, asked));
        }
        let (mut permit, _asked) = admit_proxy();
        permit.count_for(origin(1)).unwrap();
        assert!(was_asked(&clients[1].1), "the oldest of that client");
        drop((clients, silent, permit));
        assert_eq!((permits.open(), permits.silent().total), (0, 0));
        assert_eq!(permits.silent().leaving, 0);
    }

    #[test]
    fn networks_of_ipv6_are_one_origin() {
        let of = |text: &str| Origin::of(Some(text.parse().unwrap()));
        assert_eq!(of("[2001:db8::1]:5"), of("[2001:db8::ffff:1]:6"));
        assert_ne!(of("[2001:db8::1]:5"), of("[2001:db8:0:1::1]:5"));
        assert_eq!(of("[::ffff:10.0.0.1]:5"), origin(1));
        assert_eq!(of("[2001:db8::1]:5").to_string(), "2001:db8:0:0::/64");
        assert_eq!(Origin::of(None), Origin::Local);
    }
}
