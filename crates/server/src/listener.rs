//! Accepting connections, and refusing them if a limit says so.
//!
//! One reactor accepts for all. It hands the connections of AMQP round in turn, so each of two
//! clients has a reactor of its own. A race of the reactors for the listener would not give them
//! that. Those of the Redis and of the beanstalkd protocol stay together.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use input::{Admission, Entrance, Proxied};
use model::{Introduction, Nanos};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, acceptfrom_with, bind, getsockname, listen,
    socket_with, sockopt,
};

use crate::address::{Address, Endpoint, Listen, Listening, UnixSocket};
use crate::client::{Client, unix_user};
use crate::config::Protocol;
use crate::connection_permits::{ConnectionPermit, Exit, Origin};
use crate::error::StartError;
use crate::events::EventSet;
use crate::hub::Hub;
use crate::lobby::{Farewell, Lobby, Newcomer};
use crate::log::Complaint;
use crate::mailbox::Arrival;
use crate::passed::PassedSocket;
use crate::socket_file::SocketFile;

/// A place that is listened on.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    listening: Listening,
    admission: Arc<Admission>,
    /// Its socket in the file system, if it has one: goes with it.
    file: Option<SocketFile>,
}

/// Listens at all of them, in their order.
///
/// # Errors
/// [`StartError::Listen`]: one cannot be listened on. Then none is.
pub(crate) fn bind_all(all: &[Listen]) -> Result<Vec<Listener>, StartError> {
    let mut listeners = Vec::new();
    for listen in all {
        match &listen.address {
            Address::Tcp(addresses) => {
                let has_ipv4 = |port| has_ipv4_wildcard(all, port);
                listeners.extend(bind_name(&Served::by(listen), addresses, has_ipv4)?);
            }
            Address::Unix(socket) => listeners.push(bind_unix(&Served::by(listen), socket)?),
            Address::Passed { sockets, .. } => {
                for socket in sockets {
                    listeners.push(take_passed(&Served::by(listen), socket)?);
                }
            }
        }
    }
    Ok(listeners)
}

/// True if a listener has all addresses of IPv4 with this port: one of IPv6 leaves them to it.
fn has_ipv4_wildcard(all: &[Listen], port: u16) -> bool {
    let wildcard = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    all.iter().any(|listen| listen.address.endpoints().contains(&Endpoint::Tcp(wildcard)))
}

/// The service of a listener at each of its addresses: a protocol, by TLS or without, and to whom.
#[derive(Clone, Debug)]
struct Served {
    protocol: Protocol,
    by_tls: bool,
    admission: Arc<Admission>,
}

impl Served {
    fn by(listen: &Listen) -> Self {
        let admission = Arc::new(listen.admission.clone());
        Self { protocol: listen.protocol, by_tls: listen.by_tls, admission }
    }

    fn at(&self, endpoint: Endpoint, socket: OwnedFd, file: Option<SocketFile>) -> Listener {
        let listening = Listening { protocol: self.protocol, by_tls: self.by_tls, endpoint };
        Listener { socket, listening, admission: Arc::clone(&self.admission), file }
    }
}

/// Listens at the addresses of one name that this machine has, all with one port.
fn bind_name(
    served: &Served,
    addresses: &[SocketAddr],
    has_ipv4: impl Fn(u16) -> bool,
) -> Result<Vec<Listener>, StartError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match bind_once(served, addresses, &has_ipv4) {
            // The port that was picked at the first address is taken at another.
            Err((address, Errno::ADDRINUSE)) if address.port() == 0 && tries < PICKS_MAX => {}
            result => {
                return result.map_err(|(address, errno)| {
                    let (endpoint, cause) = (Endpoint::Tcp(address), errno.into());
                    StartError::Listen { endpoint, cause }
                });
            }
        }
    }
}

fn bind_once(
    served: &Served,
    addresses: &[SocketAddr],
    has_ipv4: &impl Fn(u16) -> bool,
) -> Result<Vec<Listener>, (SocketAddr, Errno)> {
    let mut listeners = Vec::new();
    let (mut picked, mut absent) = (None, None);
    for asked in addresses {
        let mut address = *asked;
        address.set_port(picked.unwrap_or(address.port()));
        let only_ipv6 = !address.ip().is_unspecified() || has_ipv4(address.port());
        match bind_tcp(served, address, only_ipv6) {
            Ok(listener) => {
                picked = listener.listening.tcp().map(|it| it.port());
                listeners.push(listener);
            }
            // As where IPv6 is switched off.
            Err(errno @ (Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT)) => {
                absent = absent.or(Some((*asked, errno)));
            }
            Err(errno) => return Err((*asked, errno)),
        }
    }
    match absent {
        Some(absent) if listeners.is_empty() => Err(absent),
        _ => Ok(listeners),
    }
}

fn bind_tcp(served: &Served, address: SocketAddr, only_ipv6: bool) -> Result<Listener, Errno> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, FLAGS, None)?;
    // Connections of a server that has just ended do not keep its port.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, only_ipv6)?;
    }
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    ask_whether_alive(&socket)?;
    let address = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok(served.at(Endpoint::Tcp(address), socket, None))
}

fn bind_unix(served: &Served, wanted: &UnixSocket) -> Result<Listener, StartError> {
    let endpoint = Endpoint::Unix(wanted.path.clone());
    let failed = |cause| StartError::Listen { endpoint: endpoint.clone(), cause };
    let (socket, file) = SocketFile::listen(wanted, BACKLOG).map_err(failed)?;
    Ok(served.at(endpoint, socket, Some(file)))
}

/// Listens on a socket that the process was started with. Its file, if any, is not this process's.
fn take_passed(served: &Served, passed: &PassedSocket) -> Result<Listener, StartError> {
    let endpoint = passed.endpoint().clone();
    let failed = |cause| StartError::Listen { endpoint: endpoint.clone(), cause };
    let socket = passed.socket().map_err(failed)?;
    if endpoint.tcp().is_some() {
        ask_whether_alive(&socket)?;
    }
    Ok(served.at(endpoint, socket, None))
}

impl Listener {
    pub(crate) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(crate) const fn protocol(&self) -> Protocol {
        self.listening.protocol
    }

    /// The clients that it takes.
    pub(crate) const fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// The client of a connection before it says a word.
    fn introduction(&self, socket: &OwnedFd) -> Introduction {
        let is_file = self.listening.tcp().is_none();
        self.admission.introduction(is_file.then(|| unix_user(socket)).flatten())
    }

    /// True if it is spoken by TLS.
    pub(crate) const fn by_tls(&self) -> bool {
        self.listening.by_tls
    }

    /// The bare socket, for another loop than a reactor's, and its file.
    pub(crate) fn into_parts(self) -> (OwnedFd, Option<SocketFile>) {
        (self.socket, self.file)
    }

    /// The listener in effect, with the port that was picked.
    pub(crate) const fn listening(&self) -> &Listening {
        &self.listening
    }

    /// The same as it could be asked for.
    pub(crate) fn bound(&self) -> Option<Listen> {
        let listen = Listen::tcp(self.protocol(), self.listening.tcp()?);
        Some(Listen { by_tls: self.by_tls(), ..listen })
    }
}

/// The listeners of the reactor that accepts.
pub(crate) struct Acceptor {
    listeners: Vec<Listener>,
    lobby: Lobby,
    /// The reactor of the next connection.
    next: usize,
    /// Until when nothing is accepted, because the system had no room.
    paused_until: Option<Nanos>,
    complaint: Complaint,
}

impl Acceptor {
    pub(crate) fn new(listeners: Vec<Listener>) -> rustix::io::Result<Self> {
        let (lobby, complaint) = (Lobby::new()?, Complaint::default());
        Ok(Self { listeners, lobby, next: 0, paused_until: None, complaint })
    }

    /// Has the reactor hear when connections come, and when proxies have told of their clients.
    pub(crate) fn watch(&self, event_set: &EventSet) -> rustix::io::Result<()> {
        event_set.watch_set(self.lobby.event_set())?;
        self.listeners.iter().try_for_each(|it| event_set.watch_listener(it.socket()))
    }

    /// When accepting goes on although no listener tells of anything new.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.paused_until.into_iter().chain(self.lobby.deadline()).min()
    }

    /// True if a pause is over, or a proxy is late.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.deadline().is_some_and(|until| until <= now)
    }

    /// Accepts waiting connections, up to [`ACCEPTS_PER_TURN`] on each listener, and hands them
    /// out. Returns true if more may wait.
    pub(crate) fn accept(&mut self, hub: &Hub, now: Nanos) -> bool {
        self.welcome(hub, now);
        if self.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        self.paused_until = None;
        let mut more = false;
        for index in 0..self.listeners.len() {
            more |= self.accept_from(index, hub, now);
        }
        more
    }

    fn accept_from(&mut self, index: usize, hub: &Hub, now: Nanos) -> bool {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = self.listeners.get(index) else { return false };
            match acceptfrom_with(&listener.socket, FLAGS) {
                Ok((socket, peer)) => {
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    self.admit(index, Arc::new(socket), peer, hub, now);
                }
                Err(Errno::AGAIN) => return false,
                // These say that one connection was given up before it was accepted.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::PERM) => {}
                Err(errno) => {
                    self.pause(errno, hub, now);
                    return false;
                }
            }
        }
        true
    }

    /// Takes a connection, or closes it if it may not connect or there are too many.
    fn admit(
        &mut self,
        index: usize,
        socket: Arc<OwnedFd>,
        peer: Option<SocketAddr>,
        hub: &Hub,
        now: Nanos,
    ) {
        let Some(listener) = self.listeners.get(index) else { return };
        let exit = Exit::Socket(Arc::downgrade(&socket));
        // A socket that is gone already will tell when it is read; one of the file system has no
        // such option.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        match listener.admission.entrance(peer) {
            Entrance::Closed => {
                let scheme = listener.listening().scheme();
                hub.turned_away.note_stranger(hub.log, now, scheme, peer);
            }
            Entrance::Client => {
                let Some(permit) = hub.admit(now, Origin::of(peer), exit, false) else { return };
                self.hand_out(index, socket, None, permit, hub, now);
            }
            Entrance::Proxy(proxy) => {
                let Some(permit) = hub.admit(now, Origin::Proxy, exit, false) else { return };
                self.lobby.enter(Newcomer::new(socket, index, proxy, permit, now));
            }
        }
    }

    /// Takes the connections of proxies that have told where their clients are.
    fn welcome(&mut self, hub: &Hub, now: Nanos) {
        for (newcomer, end) in self.lobby.serve(now) {
            let Newcomer { socket, listener: index, proxy, mut permit, since, .. } = newcomer;
            let Some(listener) = self.listeners.get(index) else { continue };
            let scheme = listener.listening().scheme();
            match end {
                Err(Farewell::Gone) => {}
                Err(Farewell::Late) => {
                    hub.turned_away.note_proxy(hub.log, now, scheme, proxy, None);
                }
                Err(Farewell::Fault(fault)) => {
                    hub.turned_away.note_proxy(hub.log, now, scheme, proxy, Some(fault));
                }
                Ok(told) if !listener.admission.admits_proxied(told, proxy) => {
                    let client = Some(told.client(proxy));
                    hub.turned_away.note_stranger(hub.log, now, scheme, client);
                }
                Ok(told) => {
                    if hub.count_for(now, &mut permit, told.client(proxy)) {
                        self.hand_out(index, socket, Some(told), permit, hub, since);
                    }
                }
            }
        }
    }

    /// Hands a connection, accepted then, to the next reactor in turn.
    fn hand_out(
        &mut self,
        index: usize,
        socket: Arc<OwnedFd>,
        told: Option<Proxied>,
        permit: ConnectionPermit,
        hub: &Hub,
        since: Nanos,
    ) {
        let Some(listener) = self.listeners.get(index) else { return };
        let (protocol, by_tls) = (listener.protocol(), listener.by_tls());
        let tls = by_tls.then(|| hub.tls().expect(CERTIFIED).config(protocol));
        let introduction = listener.introduction(&socket);
        let client = Client::new(socket, introduction);
        let is_private = by_tls || client.is_local();
        let offer = hub.logins().map(|logins| logins.offer(is_private, client.introduction()));
        let client = told.into_iter().fold(client, Client::proxied);
        let reactor = self.reactor_for(protocol, hub.reactors());
        let arrival = Arrival { client, protocol, tls, offer, permit, since };
        hub.mailbox(reactor).deliver(arrival);
    }

    /// Which of so many reactors serves the next connection of this protocol.
    fn reactor_for(&mut self, protocol: Protocol, reactors: usize) -> usize {
        match protocol {
            // Each by one: their commands take effect in the order in which they arrive, as with
            // the servers that these clients know (ADR 23).
            Protocol::Redis => 0,
            Protocol::Beanstalkd => 1 % reactors,
            Protocol::Amqp | Protocol::Http => {
                self.next = (self.next + 1) % reactors;
                self.next
            }
        }
    }

    /// Without descriptors or memory the listener stays ready and nothing can be accepted: asking
    /// again at once would only burn the processor.
    fn pause(&mut self, errno: Errno, hub: &Hub, now: Nanos) {
        self.paused_until = Some(now + PAUSE);
        let cause = std::io::Error::from(errno);
        self.complaint.line(
            hub.log,
            now,
            format_args!("cannot accept connections: {cause}, trying on"),
        );
    }
}

/// A start without certificates is refused if a listener speaks TLS.
pub(crate) const CERTIFIED: &str = "invariant: listeners by TLS have certificates";

/// Lets the system ask silent peers whether they are still there: those with a machine that is gone
/// never close. Accepted sockets take it over from the one that listens.
fn ask_whether_alive(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?;
    sockopt::set_socket_keepalive(socket, true)?;
    Ok(())
}

/// Silence before a probe, the time between probes, and their number: a vanished peer is detected
/// after two minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// How often a port is picked that is free at all addresses of a name.
const PICKS_MAX: u32 = 20;

/// Connections that may wait to be accepted, if the system allows so many.
const BACKLOG: i32 = 4_096;

/// Connections that one listener takes in a turn; the rest wait for the next.
const ACCEPTS_PER_TURN: usize = 64;

/// How long accepting rests when the system has no room.
const PAUSE: Nanos = Nanos::from_millis(100);
