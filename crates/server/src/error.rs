//! Why a server does not start, and why a running one ends.

use std::net::SocketAddr;
use std::{fmt, io};

use model::{Nanos, QueueName};

use crate::THREADS_MAX;
use crate::address::Endpoint;
use crate::config::Protocol;
use crate::listener_fault::ListenerFault;
use crate::passed::PassedFault;
use crate::tls::TlsError;
use crate::users_file::UsersError;

/// The reason why a server does not start. Each names the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The data directory cannot be used.
    Disk(disk::DirectoryError),
    /// The journal in it cannot be read.
    Journal(broker::OpenError),
    /// An address cannot be listened on.
    Listen {
        /// Which.
        endpoint: Endpoint,
        /// The system's error.
        cause: io::Error,
    },
    /// Two listeners are to have one address.
    ListenTwice {
        /// Which.
        endpoint: Endpoint,
    },
    /// Clients do not authenticate, so no listener may be where other machines reach it, unless the
    /// configuration allows it.
    Insecure {
        /// The protocol it was to speak, as on the command line.
        scheme: &'static str,
        /// The address that it was to listen on.
        address: SocketAddr,
    },
    /// Sockets that the process was started with cannot be used.
    Passed(PassedFault),
    /// The options of a listener are at odds.
    Listener(ListenerFault),
    /// A listener is to speak TLS, and the server has no certificate.
    NoCertificate {
        /// Its protocol, as on the command line.
        scheme: &'static str,
    },
    /// A file of TLS cannot be used.
    Tls(TlsError),
    /// The file of users cannot be used.
    Users(UsersError),
    /// The audit log cannot be opened.
    Audit(io::Error),
    /// The number of threads is 0 or too large.
    Threads {
        /// The configured number.
        asked: usize,
    },
    /// So many connections cannot be served.
    Connections {
        /// The configured number.
        asked: usize,
    },
    /// With so few bytes no answer could be given.
    OutputBytes {
        /// The setting, as on the command line.
        setting: &'static str,
        /// The configured number.
        asked: usize,
    },
    /// Messages may not be allowed to be so large.
    MessageBytes {
        /// The configured number.
        asked: usize,
    },
    /// So large messages would fill the buffers of connections.
    LargeMessages {
        /// The configured number.
        asked: usize,
        /// The most that may be.
        most: usize,
        /// Bytes of all connections' buffers.
        buffers: usize,
    },
    /// A journal with segments that have room for the largest message does not fit into so little.
    DiskLimit {
        /// The configured number.
        asked: u64,
        /// The least that is possible.
        least: u64,
    },
    /// The machine's clock is so far ahead of the journal that it may be wrong, and messages or
    /// keys would end by it.
    ClockAhead {
        /// The present by the machine's clock.
        now: Nanos,
        /// When the journal was last changed.
        latest: Nanos,
        /// How many messages and keys would end.
        ending: u64,
    },
    /// A queue is to block senders by the age of its waiting messages, and to block no sender.
    TargetAge {
        /// Which; `None`: all that are not named.
        queue: Option<QueueName>,
    },
    /// The system lets so few files be open that there can be no store.
    Descriptors {
        /// How many are left for files of the store.
        files: usize,
        /// The least that are needed.
        least: usize,
    },
    /// The system refuses a resource that every server needs: threads, descriptors.
    System(io::Error),
}

impl StartError {
    /// A setting makes no sense, on any machine and at any time.
    #[must_use]
    pub const fn is_misuse(&self) -> bool {
        match self {
            Self::Insecure { .. }
            | Self::Listener(_)
            | Self::Passed(_)
            | Self::NoCertificate { .. }
            | Self::ListenTwice { .. }
            | Self::Threads { .. }
            | Self::Connections { .. }
            | Self::OutputBytes { .. }
            | Self::MessageBytes { .. }
            | Self::LargeMessages { .. }
            | Self::DiskLimit { .. }
            | Self::TargetAge { .. } => true,
            Self::Disk(_)
            | Self::Journal(_)
            | Self::Tls(_)
            | Self::Users(_)
            | Self::Audit(_)
            | Self::Listen { .. }
            | Self::ClockAhead { .. }
            | Self::Descriptors { .. }
            | Self::System(_) => false,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Journal(error) => error.fmt(f),
            Self::Listen { endpoint, cause } => {
                write!(f, "cannot listen on {endpoint}: {cause}{}", mend(endpoint, cause))
            }
            Self::ClockAhead { now, latest, ending } => f.write_str(&ahead(*now, *latest, *ending)),
            Self::ListenTwice { endpoint } => write!(
                f,
                "two listeners are to have {endpoint}: give each a port of its own with --listen"
            ),
            Self::Insecure { scheme, address } => f.write_str(&exposed(scheme, *address)),
            Self::Listener(fault) => fault.fmt(f),
            Self::Passed(fault) => fault.fmt(f),
            Self::NoCertificate { scheme } => write!(
                f,
                "{scheme} needs a certificate: give --tls-cert FILE and --tls-key FILE, both PEM"
            ),
            Self::Users(error) => write!(f, "the users cannot be read: {error}"),
            Self::Audit(error) => write!(f, "the audit log cannot be written: {error}"),
            Self::Tls(error) => write!(f, "TLS cannot be spoken: {error}"),
            Self::Threads { asked } => {
                write!(f, "{asked} threads are not possible, choose --threads 1 to {THREADS_MAX}")
            }
            Self::Connections { asked } => write!(
                f,
                "{asked} connections are not possible, choose --max-connections 1 to {}",
                crate::config::CONNECTIONS_MAX
            ),
            Self::OutputBytes { setting, asked } => write!(
                f,
                "{asked} bytes are too few for answers, choose {setting} {} or more",
                crate::buffered::ALLOWED_BYTES_MIN
            ),
            Self::DiskLimit { asked, least } => write!(
                f,
                "{asked} bytes are too few for the journal: let it have {least} (--disk-limit), or \
                 allow smaller messages (--max-message-bytes) and segments (--segment-bytes)"
            ),
            Self::Descriptors { files, least } => write!(
                f,
                "the system leaves {files} open files for the journal, which takes {least} at \
                 least: raise `ulimit -n` (1024 will do), or keep nothing (--store none)"
            ),
            Self::MessageBytes { asked } => write!(
                f,
                "messages of {asked} bytes are not possible, choose --max-message-bytes 1 to {}",
                model::limits::MESSAGE_BYTES_MAX
            ),
            Self::LargeMessages { asked, most, buffers } => write!(
                f,
                "messages of {asked} bytes are too large for connections' buffers of {buffers} \
                 bytes, an eighth of --memory-limit unless --max-buffered-bytes is less: choose \
                 --max-message-bytes {most} at most, or --memory-limit {} at least, and \
                 --max-buffered-bytes {} where that is set",
                32 * *asked as u64,
                4 * *asked as u64
            ),
            Self::TargetAge { queue } => write!(
                f,
                "--queue '{}:target-age' holds senders off, which when-full=drop-oldest and \
                 dead-letter never do: choose when-full=block or reject, or leave target-age out",
                queue.as_ref().map_or("*", QueueName::as_str)
            ),
            Self::System(cause) => write!(f, "the system refuses to start a server: {cause}"),
        }
    }
}

impl std::error::Error for StartError {}

fn ahead(now: Nanos, latest: Nanos, ending: u64) -> String {
    format!(
        "this machine's clock shows {}, {} days after the journal was last changed ({}): {ending} \
         messages and keys would end now, for good. If the clock is right, start with \
         --accept-clock; if not, set it and start again",
        now.rfc3339(),
        now.since(latest).as_secs() / 86_400,
        latest.rfc3339()
    )
}

fn exposed(protocol: &str, address: SocketAddr) -> String {
    let port = address.port();
    let by_tls = Protocol::named(protocol).map_or(protocol, |(known, _)| known.name_by_tls());
    format!(
        "{protocol} would listen on {address}, where everybody who reaches it could read, send and \
         delete messages: listen on loopback (--listen {protocol}=127.0.0.1:{port}) or on a Unix \
         socket (--listen {protocol}=unix:PATH), use TLS and users (--listen {by_tls}=ADDRESS, \
         --users FILE), or say --insecure-listen {protocol}={address} where only those you trust \
         reach it"
    )
}

/// The remedy for an endpoint that cannot be listened on.
fn mend(endpoint: &Endpoint, cause: &io::Error) -> &'static str {
    match (endpoint, cause.kind()) {
        (Endpoint::Tcp(_), io::ErrorKind::AddrInUse) => {
            ", stop the process that does or choose another port with --listen"
        }
        (Endpoint::Unix(_), io::ErrorKind::AddrInUse) => {
            ", stop the process that does or choose another path with --listen"
        }
        (Endpoint::Tcp(_), io::ErrorKind::PermissionDenied) => {
            ", choose a port above 1023 with --listen"
        }
        (Endpoint::Unix(_), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
            ", choose a directory that is there and that this user may write to"
        }
        (Endpoint::Tcp(_), io::ErrorKind::AddrNotAvailable) => {
            ", choose an address of this machine with --listen"
        }
        _ => "",
    }
}

impl From<rustix::io::Errno> for StartError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::System(errno.into())
    }
}

/// The reason why a running server ended by itself. Changes unconfirmed by then never are
/// confirmed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The journal could not be written: its error.
    Journal(String),
    /// A thread panicked: its name.
    Panicked(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(cause) => {
                write!(f, "the journal failed, nothing more is confirmed: {cause}")
            }
            Self::Panicked(thread) => write!(f, "thread {thread} panicked"),
        }
    }
}

impl std::error::Error for Failure {}
