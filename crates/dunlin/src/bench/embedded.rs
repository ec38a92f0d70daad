//! A broker in this process, on a directory that goes away with it.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use model::{StorePolicy, limits};
use server::{Config, Counters, Limits, Listen, Listening, Logger, Protocol, Running, Server};

use crate::exit::Error;

/// It stops when it is dropped.
pub(super) struct Embedded {
    running: Running,
    /// Dropped after the server.
    _directory: Temporary,
}

/// The settings of the broker to start.
pub(super) struct Wish {
    /// The directory in which its data directory is made.
    pub(super) base: PathBuf,
    pub(super) policy: StorePolicy,
    pub(super) protocol: Protocol,
    pub(super) clients: usize,
    pub(super) body_bytes: usize,
}

impl Embedded {
    /// Starts it on a port of its own.
    pub(super) fn start(wish: Wish) -> Result<Self, Error> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let started = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("dunlin-bench-{}-{started}", std::process::id());
        let directory = Temporary(wish.base.join(name));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let defaults = Limits::default();
        let config = Config {
            data: directory.0.clone(),
            policy: wish.policy,
            listen: vec![Listen::tcp(wish.protocol, address)],
            limits: Limits {
                message_bytes: (wish.protocol == Protocol::Beanstalkd)
                    .then_some(wish.body_bytes.max(limits::MESSAGE_BYTES_DEFAULT)),
                // One more watches.
                connections: defaults.connections.max(wish.clients + 1),
                ..defaults
            },
            log: Logger::Quiet,
            ..Config::default()
        };
        let running = Server::start(config).map_err(Error::Start)?;
        Ok(Self { running, _directory: directory })
    }

    pub(super) fn address(&self) -> SocketAddr {
        let listening = self.running.addresses().first().and_then(Listening::tcp);
        listening.expect("invariant: it listens on one address")
    }

    pub(super) fn counters(&self) -> Counters {
        self.running.counters()
    }
}

/// The directory in which data directories are made: the given one, or the system's temporary one.
pub(super) fn base(given: Option<&Path>) -> Result<PathBuf, Error> {
    let base = given.map_or_else(std::env::temp_dir, Path::to_owned);
    if base.is_dir() {
        return Ok(base);
    }
    Err(Error::Settings(format!("{} is no directory", base.display())))
}

/// A directory that is removed with all its contents.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            // Without a reader of standard error the message is lost.
            let _ =
                writeln!(std::io::stderr(), "dunlin: cannot remove {}: {error}", self.0.display());
        }
    }
}
