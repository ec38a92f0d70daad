//! Accepting connections, and refusing them where a limit says so.
//!
//! One reactor accepts for all. It hands the connections of AMQP round in turn: each of two clients
//! then has a reactor of its own, which a race of the reactors for the listener would not give
//! them. Those of the Redis and of the beanstalkd protocol stay together.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::Nanos;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, listen, sockopt};

use crate::config::{Listen, Protocol};
use crate::error::StartError;
use crate::hub::Hub;
use crate::log::Complaint;
use crate::post::Arrival;

/// An address that is listened on.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    protocol: Protocol,
    address: SocketAddr,
}

impl Listener {
    pub(crate) fn bind(to: Listen) -> Result<Self, StartError> {
        let failed = |cause| StartError::Listen { address: to.address, cause };
        let socket = TcpListener::bind(to.address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        // The library's own is 128: hundreds of clients who come back at once would wait a second.
        listen(&socket, BACKLOG).map_err(|errno| failed(errno.into()))?;
        ask_whether_alive(&socket).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, protocol: to.protocol, address })
    }

    pub(crate) const fn socket(&self) -> &TcpListener {
        &self.socket
    }

    pub(crate) const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The bare listener, for another loop than a reactor's.
    pub(crate) fn into_socket(self) -> TcpListener {
        self.socket
    }

    /// What it became: with the port that was picked.
    pub(crate) const fn bound(&self) -> Listen {
        Listen { protocol: self.protocol, address: self.address }
    }
}

/// The listeners of the reactor that accepts.
#[derive(Debug, Default)]
pub(crate) struct Acceptor {
    listeners: Vec<Listener>,
    /// Where the next connection goes.
    next: usize,
    /// Until when nothing is accepted, because the system had no room.
    paused_until: Option<Nanos>,
    complaint: Complaint,
}

impl Acceptor {
    pub(crate) fn new(listeners: Vec<Listener>) -> Self {
        Self { listeners, ..Self::default() }
    }

    pub(crate) fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// When accepting goes on although no listener tells of anything new.
    pub(crate) const fn deadline(&self) -> Option<Nanos> {
        self.paused_until
    }

    /// Whether a pause is over.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.paused_until.is_some_and(|until| until <= now)
    }

    /// Accepts what waits, up to [`ACCEPTS_PER_TURN`] on each listener, and hands it out. Tells
    /// whether more may wait.
    pub(crate) fn accept(&mut self, hub: &Hub, now: Nanos) -> bool {
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
            match accept_with(&listener.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    let arrival = Arrival { socket, protocol: listener.protocol };
                    self.admit(arrival, hub, now);
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

    /// Hands a connection to the reactor whose turn it is, or closes it where there are too many.
    fn admit(&mut self, arrival: Arrival, hub: &Hub, now: Nanos) {
        if hub.connections.fetch_add(1, Ordering::Relaxed) >= hub.limits.connections {
            hub.connections.fetch_sub(1, Ordering::Relaxed);
            let limit = hub.limits.connections;
            self.complaint.line(
                hub.log,
                now,
                format_args!("refusing connections: {limit} are open"),
            );
            return;
        }
        // A socket that is gone already will tell when it is read.
        let _ = sockopt::set_tcp_nodelay(&arrival.socket, true);
        hub.post(self.reactor_for(arrival.protocol, hub.reactors())).deliver(arrival);
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

/// Lets the system ask silent peers whether they are still there: those whose machine is gone never
/// close. Accepted sockets take it over from the one that listens.
fn ask_whether_alive(socket: &TcpListener) -> std::io::Result<()> {
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?;
    sockopt::set_socket_keepalive(socket, true)?;
    Ok(())
}

/// How long a peer may be silent before it is asked, how long it has to answer, and how often it is
/// asked: who is gone is known to be after two minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

/// Connections that may wait to be accepted, where the system allows so many.
const BACKLOG: i32 = 4_096;

/// Connections that one listener takes in a turn; the rest wait for the next.
const ACCEPTS_PER_TURN: usize = 64;

/// How long accepting rests when the system has no room.
const PAUSE: Nanos = Nanos::from_millis(100);
