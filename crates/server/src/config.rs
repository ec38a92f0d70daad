//! The configuration of a server, and its limits. The binary reads files, variables and flags into
//! it.

use std::path::PathBuf;
use std::time::Duration;

use disk::Choice;
use engine::QueuePolicies;
use http_api::AllowedHost;
use model::{QueueName, StorePolicy};
use resp::Side;

use crate::Logger;
use crate::address::Listen;
use crate::audit::AuditTarget;
use crate::passed::PassedSocket;
use crate::tls::TlsSettings;

/// Everything that an operator chooses.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory; not touched when the policy keeps nothing.
    pub data: PathBuf,
    /// The meaning of "persistent".
    pub policy: StorePolicy,
    /// The listeners: addresses, protocols and admitted clients.
    pub listen: Vec<Listen>,
    /// Sockets that the process was started with, for listeners that ask for them.
    pub passed: Vec<PassedSocket>,
    /// All listeners may be where other machines reach them, although no client has to
    /// authenticate.
    pub insecure: bool,
    /// The file of users; `None`: clients do not log in, and each may do everything.
    pub users: Option<PathBuf>,
    /// The audit log; `None`: there is none.
    pub audit: Option<AuditTarget>,
    /// The files of TLS, for the listeners that speak it.
    pub tls: TlsSettings,
    /// Names by which requests of HTTP may call the server, beside addresses and `localhost`.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Reactor threads, 1 to [`THREADS_MAX`].
    pub threads: usize,
    /// How the journal writes.
    pub journal_io: Choice,
    /// Bytes of a journal segment, as far as the largest message allows; `None`: the usual.
    pub segment_bytes: Option<u64>,
    /// Bytes that the journal may take on the device; `None`: as many as there are.
    pub disk_limit: Option<u64>,
    /// Bytes of memory that messages and connections may take; `None`: a quarter of the machine's.
    pub memory_limit: Option<u64>,
    /// Rules of single queues.
    pub queues: QueuePolicies,
    /// The queue of dead letters; `None`: the engine's default.
    pub dead_letter_queue: Option<QueueName>,
    /// How long the ids that senders give their messages are remembered; zero: not at all, `None`:
    /// as long as the engine says.
    pub dedup_window: Option<Duration>,
    /// How many of them; `None`: as many as the engine says.
    pub dedup_max_ids: Option<usize>,
    /// The longest wait of a send for a place in a queue that makes no progress; `None`: the
    /// engine's default.
    pub block_timeout: Option<Duration>,
    /// Which side of a list by the Redis protocol is the head of the queue.
    pub list_head: Side,
    /// How many databases clients of Redis may select.
    pub redis_databases: usize,
    /// Clients of Redis may run scripts.
    pub scripts: bool,
    /// The longest time that a script may take.
    pub script_time: Duration,
    /// The limits on the cost of peers.
    pub limits: Limits,
    /// The machine's clock is right, though it is far ahead of the journal.
    pub accept_clock: bool,
    /// The sink of log lines.
    pub log: Logger,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::from("dunlin-data"),
            policy: StorePolicy::Always,
            listen: Protocol::ALL.map(Protocol::standard).to_vec(),
            passed: Vec::new(),
            insecure: false,
            users: None,
            audit: None,
            tls: TlsSettings::default(),
            allowed_hosts: Vec::new(),
            threads: threads_default(),
            journal_io: Choice::Auto,
            segment_bytes: None,
            disk_limit: None,
            memory_limit: None,
            queues: QueuePolicies::default(),
            dead_letter_queue: None,
            dedup_window: None,
            dedup_max_ids: None,
            block_timeout: None,
            list_head: Side::default(),
            redis_databases: resp::Options::default().databases,
            scripts: true,
            script_time: script::Limits::default().time,
            limits: Limits::default(),
            accept_clock: false,
            log: Logger::Stderr,
        }
    }
}

/// The limits on the cost of peers. Each limit has a refusal of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections; one more is accepted and closed at once.
    pub connections: usize,
    /// Bytes of one message: by AMQP all of it, by the Redis protocol one element or any other
    /// word, else its body. `None`: as many as there is memory for, by beanstalkd's protocol
    /// [`model::limits::MESSAGE_BYTES_DEFAULT`] of them at most.
    pub message_bytes: Option<usize>,
    /// Bytes that a connection may leave unread before the server stops reading its commands.
    pub output_bytes: usize,
    /// Bytes in the buffers of all connections. The fuller they are, the less may one connection
    /// leave unread; beyond the limit the server closes the connection with the most buffered
    /// bytes.
    pub buffered_bytes: usize,
    /// How long a command may stay half sent before its connection is closed.
    pub half_sent: Option<Duration>,
    /// How long a connection may send and receive nothing before it is closed, unless it waits for
    /// an answer or for a publication. `None`: for ever.
    pub idle: Option<Duration>,
    /// How long a connection of HTTP may ask nothing before it is closed. `None`: for ever.
    pub http_idle: Option<Duration>,
    /// How long peers may take to read their last answers when the server stops.
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            message_bytes: None,
            output_bytes: 1024 * 1024,
            buffered_bytes: 256 * 1024 * 1024,
            half_sent: Some(Duration::from_secs(60)),
            idle: None,
            http_idle: Some(Duration::from_secs(75)),
            stop: Duration::from_secs(5),
        }
    }
}

/// The protocols that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// AMQP 1.0.
    Amqp,
    /// beanstalkd's.
    Beanstalkd,
    /// Redis's.
    Redis,
    /// HTTP/1.1 and h2c.
    Http,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Amqp, Self::Beanstalkd, Self::Redis, Self::Http];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amqp => "amqp",
            Self::Beanstalkd => "beanstalkd",
            Self::Redis => "redis",
            Self::Http => "http",
        }
    }

    /// Its name on the command line when it is spoken by TLS.
    #[must_use]
    pub const fn name_by_tls(self) -> &'static str {
        match self {
            Self::Amqp => "amqps",
            Self::Beanstalkd => "beanstalkds",
            Self::Redis => "rediss",
            Self::Http => "https",
        }
    }

    /// The usual port, by TLS or without.
    #[must_use]
    pub const fn usual_port(self, by_tls: bool) -> u16 {
        match (self, by_tls) {
            (Self::Amqp, false) => 5_672,
            (Self::Amqp, true) => 5_671,
            (Self::Beanstalkd, false) => 11_300,
            (Self::Beanstalkd, true) => 11_301,
            (Self::Redis, false) => 6_379,
            (Self::Redis, true) => 6_380,
            (Self::Http, false) => 8_422,
            (Self::Http, true) => 8_443,
        }
    }

    /// The protocol of that name, and true if it is spoken by TLS.
    #[must_use]
    pub fn named(name: &str) -> Option<(Self, bool)> {
        let plain = Self::ALL.into_iter().find(|protocol| protocol.name() == name);
        let by_tls = Self::ALL.into_iter().find(|protocol| protocol.name_by_tls() == name);
        plain.map(|it| (it, false)).or_else(|| by_tls.map(|it| (it, true)))
    }

    /// Its standard port on both loopback addresses.
    #[must_use]
    pub fn standard(self) -> Listen {
        Listen::loopback(self, self.usual_port(false))
    }
}

/// The most connections that may be allowed: those that one reactor can number.
pub(crate) const CONNECTIONS_MAX: usize = 200_000;

/// The most reactor threads: one lock feeds them, so more would only wait for it.
pub const THREADS_MAX: usize = 64;

/// Half the cores, two at most: clients, committers and the kernel want the others (ADR 7).
#[must_use]
pub fn threads_default() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 2))
}
