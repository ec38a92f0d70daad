//! Sockets that the process was started with: systemd's socket activation (sd_listen_fds(3)).
//!
//! The service manager listens, also while the broker is down: connections wait instead of being
//! refused. A listener takes the sockets of one name; each socket has to be taken.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use listenfd::ListenFd;
use rustix::io::ioctl_fionbio;
use rustix::net::{SocketAddrUnix, getsockname, sockopt};

use crate::address::{Address, Endpoint, Listen};

/// A socket that listens, and the name by which it was passed.
#[derive(Clone, Debug)]
pub struct PassedSocket {
    name: Arc<str>,
    endpoint: Endpoint,
    socket: Arc<OwnedFd>,
}

/// Why passed sockets cannot be used. Each names the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassedFault {
    /// A variable says something else than systemd does.
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A descriptor that was passed is no socket that listens for connections.
    NoListener {
        /// Its name.
        name: String,
    },
    /// A listener asks for a name that no socket has.
    Absent {
        /// The name.
        name: Arc<str>,
        /// Those that sockets have.
        passed: Vec<Arc<str>>,
    },
    /// No listener asks for a socket.
    Left {
        /// Its name.
        name: Arc<str>,
        /// The place at which it listens.
        endpoint: Endpoint,
    },
}

impl PartialEq for PassedSocket {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.endpoint == other.endpoint
    }
}

impl Eq for PassedSocket {}

impl PassedSocket {
    /// The sockets that the environment tells of (`LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES`), in
    /// their order. They can be taken once.
    ///
    /// # Errors
    /// [`PassedFault`].
    pub fn from_environment() -> Result<Vec<Self>, PassedFault> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        // Those of a process that has started this one are not for it.
        if variable("LISTEN_PID") != std::process::id().to_string() {
            return Ok(Vec::new());
        }
        let (count, names) = (variable(COUNT), variable("LISTEN_FDNAMES"));
        let is_possible = |count: &usize| *count <= SOCKETS_MAX;
        if count.parse().ok().filter(is_possible).is_none() {
            return Err(PassedFault::Variable { name: COUNT, value: count });
        }
        let mut passed = ListenFd::from_env();
        let mut names = names.split(':');
        let name = |_| names.next().filter(|name| !name.is_empty()).unwrap_or(UNNAMED).to_owned();
        let names: Vec<_> = (0..passed.len()).map(name).collect();
        let take = |(index, name): (usize, String)| {
            let tcp = passed.take_tcp_listener(index).ok().flatten().map(OwnedFd::from);
            let unix = || passed.take_unix_listener(index).ok().flatten().map(OwnedFd::from);
            let socket = tcp.or_else(unix);
            let found = socket.and_then(|socket| Self::new(&name, socket));
            found.ok_or(PassedFault::NoListener { name })
        };
        names.into_iter().enumerate().map(take).collect()
    }

    /// A socket of this name. `None`: it does not listen for connections.
    #[must_use]
    pub fn new(name: &str, socket: impl Into<OwnedFd>) -> Option<Self> {
        let socket = socket.into();
        if !sockopt::socket_acceptconn(&socket).ok()? {
            return None;
        }
        ioctl_fionbio(&socket, true).ok()?;
        let address = getsockname(&socket).ok()?;
        let endpoint = match SocketAddr::try_from(address.clone()) {
            Ok(address) => Endpoint::Tcp(address),
            Err(_) => Endpoint::Unix(unix_path(&SocketAddrUnix::try_from(address).ok()?)),
        };
        Some(Self { name: name.into(), endpoint, socket: Arc::new(socket) })
    }

    /// The place at which it listens.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The same socket under a number of its own.
    pub(crate) fn socket(&self) -> std::io::Result<OwnedFd> {
        self.socket.try_clone()
    }
}

/// Its path, or `@` and the name of one that has no file.
fn unix_path(address: &SocketAddrUnix) -> std::path::PathBuf {
    match (address.path(), address.abstract_name()) {
        (Some(path), _) => std::ffi::OsStr::from_bytes(path.to_bytes()).into(),
        (None, Some(name)) => format!("@{}", String::from_utf8_lossy(name)).into(),
        (None, None) => std::path::PathBuf::new(),
    }
}

/// Gives listeners the passed sockets that they ask for.
///
/// # Errors
/// [`PassedFault`]: a listener finds none, or a socket no listener.
pub(crate) fn assign(listen: &mut [Listen], passed: &[PassedSocket]) -> Result<(), PassedFault> {
    let mut is_taken = vec![false; passed.len()];
    for listen in listen {
        let Address::Passed { name, sockets } = &mut listen.address else { continue };
        for (socket, is_taken) in passed.iter().zip(&mut is_taken) {
            if socket.name == *name && !std::mem::replace(is_taken, true) {
                sockets.push(socket.clone());
            }
        }
        if sockets.is_empty() {
            let passed = passed.iter().map(|socket| Arc::clone(&socket.name)).collect();
            return Err(PassedFault::Absent { name: Arc::clone(name), passed });
        }
    }
    match passed.iter().zip(is_taken).find(|(_, is_taken)| !is_taken) {
        Some((PassedSocket { name, endpoint, .. }, _)) => {
            Err(PassedFault::Left { name: Arc::clone(name), endpoint: endpoint.clone() })
        }
        None => Ok(()),
    }
}

impl fmt::Display for PassedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable { name, value } => write!(
                f,
                "{name}={value} is no number up to {SOCKETS_MAX}: have the service manager set it"
            ),
            Self::NoListener { name } => write!(
                f,
                "what was passed as {name} is no socket that listens: say ListenStream=ADDRESS in \
                 the socket unit, without Accept=yes"
            ),
            Self::Absent { name, passed } if passed.is_empty() => write!(
                f,
                "systemd:{name} is asked for, and no socket was passed: enable the socket unit \
                 with FileDescriptorName={name} and start the broker by it"
            ),
            Self::Absent { name, passed } => write!(
                f,
                "systemd:{name} is asked for, and {} was passed: correct --listen, or \
                 FileDescriptorName= of the socket unit",
                passed.join(", ")
            ),
            Self::Left { name, endpoint } => write!(
                f,
                "{endpoint} was passed as {name}, and no listener takes it: say --listen \
                 PROTOCOL=systemd:{name}, or disable the socket unit"
            ),
        }
    }
}

impl std::error::Error for PassedFault {}

/// The variable with the number of sockets.
const COUNT: &str = "LISTEN_FDS";

/// The name of a socket without one, as systemd says it.
const UNNAMED: &str = "unknown";

/// Sockets that may be passed.
const SOCKETS_MAX: usize = 64;
